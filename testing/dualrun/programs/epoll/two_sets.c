// One fd in two sets, with masks of their own (libvma: ENOMEM); removing it from one leaves the other.
#include "epoll.h"

static void subject(int fd) {
    int one = set_of(fd, EPOLLIN), other = set_of(fd, EPOLLIN | EPOLLOUT), edge = set_of(fd, EPOLLIN | EPOLLET);
    say_set("one", one, 0);
    say_set("other", other, 0);
    meet();
    say_set("one", one, -1);
    say_set("edge", edge, -1);
    settle(fd, 4);
    say_set("one", one, 0);
    say_set("other", other, 0);
    say_set("edge", edge, 0);
    OK(control(one, EPOLL_CTL_DEL, fd, 0));
    say_set("one", one, 0);
    say_set("other", other, 0);
    OK(close(other));
    hear(fd, 4);
    meet();
    say_set("edge", edge, -1);
    OK(control(one, EPOLL_CTL_ADD, fd, EPOLLIN));
    say_set("one", one, -1);
    hear(fd, 4);
    say_set("one", one, 0);
}

static void partner(int fd) {
    for (int i = 0; i < 2; i++) {
        meet();
        send_text(fd, "data");
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
