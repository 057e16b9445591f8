// What the programs about epoll share.
#ifndef DUAL_EPOLL_H
#define DUAL_EPOLL_H

#include "dual.h"
#include <sys/epoll.h>

SHARED int control(int set, int operation, int fd, unsigned wanted) {
    struct epoll_event event = {.events = wanted, .data.fd = fd};
    return epoll_ctl(set, operation, fd, &event);
}

SHARED int new_set(void) { return OK(epoll_create1(EPOLL_CLOEXEC)); }

// A set with one member.
SHARED int set_of(int fd, unsigned wanted) {
    int set = new_set();
    OK(control(set, EPOLL_CTL_ADD, fd, wanted));
    return set;
}

// Says what a set reports, for one member at most.
SHARED void say_set(const char *when, int set, int timeout) {
    struct epoll_event event = {0};
    int count = epoll_wait(set, &event, 1, timeout);
    if (count < 0) say("%s: %s", when, strerrorname_np(errno));
    else if (count == 0) say("%s: none", when);
    else say("%s: %s", when, events(event.events));
}

#endif
