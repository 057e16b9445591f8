// What the program before was told of by edge-triggered and one-shot members is not told again; what came since is.
#include "inherited.h"

static void again(const char *what, int fd) {
    int edges = FIRST_SET, once = SECOND_SET;
    say("%s", what);
    say_event("edge, told before", edges, 0);
    say_event("once, told before", once, 0);
    send_text(fd, "go");
    settle(fd, 8);
    say_event("edge", edges, -1);
    say_event("edge again", edges, 0);
    say_event("once", once, 0);
    OK(control(once, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT));
    say_event("once, modified", once, -1);
    say_event("once more", once, 0);
    hear(fd, 8);
    OK(control(once, EPOLL_CTL_MOD, fd, EPOLLIN));
    talk_by_set("one by one", once, fd);
}

static void subject(int fd) {
    set_at(FIRST_SET);
    set_at(SECOND_SET);
    OK(control(FIRST_SET, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET));
    OK(control(SECOND_SET, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLONESHOT));
    say_event("edge, before", FIRST_SET, -1);
    say_event("once, before", SECOND_SET, -1);
    OK(execv(self(), words_again(self(), "the next program", fd)));
}

static void partner(int fd) {
    send_text(fd, "data");
    hear(fd, 2);
    send_text(fd, "more");
    listen_by_set(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
