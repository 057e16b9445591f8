// A set that is inherited over exec tells the next program of the connection: waiting, changing, deleting and adding go on as before.
#include "inherited.h"

static void again(const char *what, int fd) {
    int set = inherited_set();
    say("%s", what);
    say_set("told before", set, 0);
    hear(fd, 4);
    say_set("nothing", set, 0);
    send_text(fd, "more");
    say_event("more", set, -1);
    hear(fd, 4);
    OK(control(set, EPOLL_CTL_MOD, fd, EPOLLOUT));
    say_event("changed", set, -1);
    OK(control(set, EPOLL_CTL_MOD, fd, EPOLLIN));
    say_event("changed back", set, 0);
    talk_by_set("the next program", set, fd);
    TRY(control(set, EPOLL_CTL_ADD, fd, EPOLLIN));
    TRY(control(set, EPOLL_CTL_DEL, fd, 0));
    TRY(control(set, EPOLL_CTL_DEL, fd, 0));
    send_text(fd, "last");
    settle(fd, 4);
    say_event("deleted", set, 0);
    TRY(control(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET));
    say_event("added", set, -1);
    say_event("once", set, 0);
    hear(fd, 4);
    OK(shutdown(fd, SHUT_WR));
    settle_end(fd);
    say_event("the end", set, -1);
}

static void subject(int fd) {
    int set = set_to_inherit();
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x123456789abcdef};
    OK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    say_event("before", set, -1);
    OK(execv(self(), words_again(self(), "the next program", fd)));
}

static void partner(int fd) {
    send_text(fd, "data");
    hear(fd, 4);
    send_text(fd, "more");
    listen_by_set(fd);
    hear(fd, 4);
    send_text(fd, "last");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
