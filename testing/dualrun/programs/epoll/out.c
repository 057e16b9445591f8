// EPOLLOUT: not while full, and again when there is room; with input at the same time.
#include "epoll.h"

static void subject(int fd) {
    OK(fcntl(fd, F_SETFL, O_NONBLOCK));
    int set = set_of(fd, EPOLLOUT | EPOLLIN);
    say_set("at first", set, -1);
    fill(buf, sizeof buf, 0);
    for (int round = 0; round < 2; round++) {
        size_t total = 0;
        ssize_t sent;
        struct epoll_event event;
        do {
            while ((sent = send(fd, buf, 65536, 0)) > 0) total += sent;
            if (errno != EAGAIN) die(__LINE__, "send");
        } while (epoll_wait(set, &event, 1, 150) == 1); // as `is_room_to_come`
        say_set("full", set, 0);
        meet();
        settle(fd, 2);
        // The kernel may enlarge its buffers just now, and report OUT, too.
        OK(epoll_wait(set, &event, 1, -1));
        say("full, with input: %s", events(event.events & ~EPOLLOUT));
        TRY(recv(fd, buf + sizeof buf - 10, 10, 0));
        fill(buf, sizeof buf, 0);
        tell_number(total);
        say_set("drained", set, -1);
        await();
    }
}

static void partner(int fd) {
    for (int round = 0; round < 2; round++) {
        meet();
        send_text(fd, "in");
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
