// A set made before fork is shared; each process may wait on it and change it.
#include "epoll.h"

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN);
    pid_t child = OK(fork());
    if (child == 0) {
        say_set("child", set, -1);
        hear(fd, 4);
        OK(control(set, EPOLL_CTL_MOD, fd, EPOLLOUT));
        _exit(0);
    }
    say_child("child", child);
    say_set("changed by the child", set, 0);
    OK(control(set, EPOLL_CTL_MOD, fd, EPOLLIN));
    tell();
    say_set("parent", set, -1);
    hear(fd, 4);
}

static void partner(int fd) {
    send_text(fd, "data");
    await();
    send_text(fd, "more");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
