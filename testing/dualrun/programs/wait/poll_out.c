// POLLOUT goes when the connection is full, and comes when the peer has read.
#include "dual.h"

static void subject(int fd) {
    OK(fcntl(fd, F_SETFL, O_NONBLOCK));
    fill(buf, sizeof buf, 0);
    for (int round = 0; round < 3; round++) {
        size_t total = 0;
        ssize_t sent;
        do {
            while ((sent = send(fd, buf, 65536, 0)) > 0) total += sent;
            if (errno != EAGAIN) die(__LINE__, "send");
        } while (is_room_to_come(fd));
        say_poll("full", fd, POLLOUT, 0);
        tell_number(total);
        say_poll("drained", fd, POLLOUT, -1);
        await();
    }
}

static void partner(int fd) {
    for (int round = 0; round < 3; round++) {
        for (size_t left = await_number(); left > 0;) {
            ssize_t got = recv(fd, buf, left < 65536 ? left : 65536, 0);
            if (got <= 0) die(__LINE__, "recv");
            left -= got;
        }
        tell();
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
