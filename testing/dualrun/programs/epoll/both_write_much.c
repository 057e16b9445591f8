// Each end writes what two rings do not hold, and TCP does, before it reads, and waits for room in a set: one by edges, the other not.
#include "epoll.h"
#include "much.h"

static int set;

static void in_set(int fd) {
    (void)fd;
    struct epoll_event event;
    OK(epoll_wait(set, &event, 1, -1));
}

static void by_edges(int fd) {
    set = set_of(fd, EPOLLIN | EPOLLOUT | EPOLLET);
    write_much(fd, in_set);
    read_much(fd);
}

static void by_level(int fd) {
    set = set_of(fd, EPOLLOUT);
    write_much(fd, in_set);
    read_much(fd);
}

SUBJECT_AND_PARTNER(by_edges, by_level)
