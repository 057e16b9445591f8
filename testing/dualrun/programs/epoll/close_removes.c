// close takes a connection out of its sets; the next one with its number is not a member.
#include "epoll.h"

static void subject(void) {
    int fds[2];
    connected_twice(fds);
    int set = set_of(fds[0], EPOLLIN), number = fds[0];
    tell();
    settle(fds[0], 4);
    OK(close(fds[0]));
    say_set("closed", set, 0);
    OK(dup2(fds[1], number));
    OK(close(fds[1]));
    tell();
    settle(number, 4);
    say_set("another with its number", set, 0);
    TRY(control(set, EPOLL_CTL_MOD, number, EPOLLIN));
    TRY(control(set, EPOLL_CTL_ADD, number, EPOLLIN));
    say_set("added", set, -1);
    int third = connected();
    OK(control(set, EPOLL_CTL_DEL, number, 0));
    OK(control(set, EPOLL_CTL_ADD, third, EPOLLIN));
    tell();
    settle(third, 4);
    OK(dup2(number, third)); // dup2 removes, too
    say_set("replaced", set, 0);
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    for (int i = 0; i < 2; i++) {
        await();
        send_text(fds[i], "data");
    }
    int third = connected();
    await();
    send_text(third, "data");
    TRY_QUIETLY(recv(fds[0], buf, 1, 0) <= 0);
    settle_end(third);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
