// select and poll on a connection that a ONESHOT report has disarmed in a set (Onload's bug 52109), and on the set.
#include "epoll.h"
#include <sys/select.h>

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN | EPOLLONESHOT);
    meet();
    say_set("first", set, -1);
    fd_set in;
    FD_ZERO(&in);
    FD_SET(fd, &in);
    TRY(select(fd + 1, &in, NULL, NULL, NULL));
    say_poll("the connection", fd, POLLIN, -1);
    say_poll("the set", set, POLLIN, 0);
    hear(fd, 5);
    meet();
    FD_SET(fd, &in);
    TRY(select(fd + 1, &in, NULL, NULL, NULL)); // waits
    say_set("disarmed", set, 0);
    OK(control(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT));
    say_poll("the set", set, POLLIN, -1);
    say_set("armed", set, -1);
    hear(fd, 5);
}

static void partner(int fd) {
    for (int i = 0; i < 2; i++) {
        meet();
        send_text(fd, "piece");
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
