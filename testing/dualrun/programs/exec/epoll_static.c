// A program without a dynamic linker waits on a set that it inherited: for input, and for room with data of its own.
#include "inherited.h"

static void again(const char *what, int fd) {
    say("%s", what);
    talk_by_set("the static program", FIRST_SET, fd);
    say_event("nothing", FIRST_SET, 0);
    say_event("room", SECOND_SET, -1);
    OK(control(FIRST_SET, EPOLL_CTL_DEL, fd, 0));
    send_text(fd, "last");
    settle(fd, 4);
    say_event("deleted", FIRST_SET, 0);
}

static void subject(int fd) {
    set_at(FIRST_SET);
    set_at(SECOND_SET);
    struct epoll_event event = {.events = EPOLLOUT, .data.u64 = 0x123456789abcdef};
    OK(control(FIRST_SET, EPOLL_CTL_ADD, fd, EPOLLIN));
    OK(epoll_ctl(SECOND_SET, EPOLL_CTL_ADD, fd, &event));
    talk_by_set("before", FIRST_SET, fd);
    char *program = getenv("DUAL_STATIC");
    OK(execv(program, words_again(program, "the static program", fd)));
}

static void partner(int fd) {
    listen_by_set(fd);
    listen_by_set(fd);
    hear(fd, 4);
    send_text(fd, "last");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
