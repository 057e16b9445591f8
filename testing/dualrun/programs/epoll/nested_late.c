// A set with a connection and another set in it, whose own connection gets rings later: each message shows in the outer one, or in `poll` on it.
#include "epoll.h"

enum { ROUNDS = 40 };

static void subject(void) {
    int fds[2], set, outer, shown = 0;
    connected_twice(fds);
    set = set_of(fds[0], EPOLLIN);
    outer = set_of(set, EPOLLIN);
    OK(control(outer, EPOLL_CTL_ADD, fds[1], EPOLLIN));
    for (int i = 0; i < 2 * ROUNDS; i++) {
        int at = i < ROUNDS ? 1 : 0;
        struct epoll_event one = {0};
        struct pollfd polled = {.fd = outer, .events = POLLIN};
        tell();
        if (i % 3 == 0) OK(poll(&polled, 1, -1));
        if (epoll_wait(outer, &one, 1, -1) != 1) die(__LINE__, "epoll_wait");
        shown += one.data.fd == (at ? fds[1] : set);
        char text[4];
        if (recv_all(fds[at], text, 4) != 4) die(__LINE__, "recv");
        send_text(fds[at], "back");
    }
    say("%d shown", shown);
    OK(close(fds[0]));
    OK(close(fds[1]));
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        int at = i < ROUNDS ? 1 : 0;
        await();
        send_text(fds[at], "data");
        char text[4];
        if (recv_all(fds[at], text, 4) != 4) die(__LINE__, "recv");
    }
    recv_to_end(fds[0]);
    recv_to_end(fds[1]);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
