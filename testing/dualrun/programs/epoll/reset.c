// A reset is reported although nothing was asked for, level- and edge-triggered.
#include "epoll.h"

static void subject(int fd) {
    int level = set_of(fd, 0), edge = set_of(fd, EPOLLET | EPOLLIN | EPOLLOUT | EPOLLRDHUP);
    say_set("at first", edge, -1);
    tell();
    say_set("reset", level, -1);
    say_set("reset", edge, -1);
    say_set("no edge", edge, 0);
    TRY(recv(fd, buf, 1, 0));
    say_set("told", level, 0);
    TRY(send(fd, "x", 1, MSG_NOSIGNAL));
}

static void partner(int fd) {
    struct linger now = {1, 0};
    OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now));
    await();
    OK(close(fd));
}

SUBJECT_AND_PARTNER(subject, partner)
