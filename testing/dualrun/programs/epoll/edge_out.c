// Edge-triggered output: at first, and each time after it was full; input's edges may bring it along.
#include "epoll.h"

static void subject(int fd) {
    OK(fcntl(fd, F_SETFL, O_NONBLOCK));
    int set = set_of(fd, EPOLLOUT | EPOLLET);
    say_set("at first", set, -1);
    say_set("no edge", set, 0);
    fill(buf, sizeof buf, 0);
    for (int round = 0; round < 3; round++) {
        size_t total = 0;
        ssize_t sent;
        while ((sent = send(fd, buf, 65536, 0)) > 0) total += sent;
        if (errno != EAGAIN) die(__LINE__, "send");
        tell_number(total);
        say_set("drained", set, -1);
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
