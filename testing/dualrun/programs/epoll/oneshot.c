// One report, then silence until CTL_MOD; also when more comes meanwhile.
#include "epoll.h"

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN | EPOLLONESHOT);
    meet();
    say_set("first", set, -1);
    settle(fd, 5);
    say_set("disarmed", set, 0);
    meet();
    settle(fd, 10);
    say_set("still disarmed", set, 0);
    OK(control(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT));
    say_set("armed", set, -1);
    OK(control(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT));
    hear(fd, 10);
    say_set("armed, nothing there", set, 0);
    meet();
    say_set("the end", set, -1);
    say_set("disarmed", set, 0);
    OK(control(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLET | EPOLLONESHOT));
    say_set("armed for edges", set, -1);
    say_set("disarmed", set, 0);
}

static void partner(int fd) {
    for (int i = 0; i < 2; i++) {
        meet();
        send_text(fd, "piece");
    }
    meet();
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
