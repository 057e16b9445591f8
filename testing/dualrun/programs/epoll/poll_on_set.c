// poll and select on a set.
#include "epoll.h"
#include <sys/select.h>

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN);
    say_poll("idle", set, POLLIN | POLLOUT, 0);
    meet();
    say_poll("data", set, POLLIN | POLLOUT, -1);
    fd_set in;
    FD_ZERO(&in);
    FD_SET(set, &in);
    TRY(select(set + 1, &in, NULL, NULL, NULL));
    hear(fd, 4);
    say_poll("taken", set, POLLIN, 0);
    meet();
    FD_SET(set, &in);
    TRY(select(set + 1, &in, NULL, NULL, NULL)); // waits
    say_set("the set itself", set, 0);
    OK(control(set, EPOLL_CTL_DEL, fd, 0));
    say_poll("empty", set, POLLIN, 0);
    hear(fd, 4);
}

static void partner(int fd) {
    for (int i = 0; i < 2; i++) {
        meet();
        send_text(fd, "data");
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
