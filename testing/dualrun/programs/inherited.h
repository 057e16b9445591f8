// Sets of epoll that the next program has, too.
#ifndef DUAL_INHERITED_H
#define DUAL_INHERITED_H

#include "again.h"
#include "epoll.h"

// Where the next program looks for the first and the second.
enum { FIRST_SET = 400, SECOND_SET = 401 };

SHARED int set_at(int number) {
    int set = OK(epoll_create(1));
    OK(dup2(set, number));
    OK(close(set));
    return number;
}

SHARED int set_to_inherit(void) { return set_at(FIRST_SET); }

SHARED int inherited_set(void) { return FIRST_SET; }

// Says what a set reports, for one member at most, and with what data.
SHARED void say_event(const char *when, int set, int timeout) {
    struct epoll_event event = {0};
    int count = epoll_wait(set, &event, 1, timeout);
    if (count < 0) say("%s: %s", when, strerrorname_np(errno));
    else if (count == 0) say("%s: none", when);
    else say("%s: %s, %lx", when, events(event.events), (unsigned long)event.data.u64);
}

enum { SET_TURNS = 40 };

// Asks and hears the answer, each time the set says so; then a good deal.
SHARED void talk_by_set(const char *who, int set, int fd) {
    struct epoll_event event;
    char text[8];
    for (int i = 0; i < SET_TURNS; i++) {
        send_text(fd, "turn");
        if (OK(epoll_wait(set, &event, 1, -1)) != 1 || !(event.events & EPOLLIN)) die(__LINE__, who);
        if (recv_all(fd, text, 4) != 4 || memcmp(text, "nrut", 4) != 0) die(__LINE__, who);
    }
    send_filled(fd, 200000);
    long have = 0, same = 1;
    while (have < 200000) {
        if (OK(epoll_wait(set, &event, 1, -1)) != 1) die(__LINE__, who);
        ssize_t got = OK(recv(fd, buf, 200000 - have, 0));
        if (got == 0) die(__LINE__, who);
        same = same && as_filled(buf, got, have);
        have += got;
    }
    say("%s has talked: %ld", who, same);
}

SHARED void listen_by_set(int fd) {
    char text[8];
    for (int i = 0; i < SET_TURNS; i++) {
        if (recv_all(fd, text, 4) != 4 || memcmp(text, "turn", 4) != 0) die(__LINE__, "listen");
        send_text(fd, "nrut");
    }
    recv_filled(fd, 200000);
    send_filled(fd, 200000);
}

#endif
