// Passing a set of epoll, without its member, over a Unix socket: the other process waits on it, this one changes it and answers.
#ifndef DUAL_PASSING_SETS_H
#define DUAL_PASSING_SETS_H

#include "passing.h"
#include "talk.h"
#include "inherited.h"

// In step with `pass_set`: each waits for the other.
SHARED void wait_on_taken(const char *what, int over) {
    int set = take(over);
    const char *steps[] = {"data", "changed", "changed back", "deleted", "added", "of another", "the end"};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char wait;
        OK(read(over, &wait, 1));
        say("%s", what);
        say_event(steps[i], set, wait ? -1 : 0);
        OK(write(over, "", 1));
    }
}

// The other process looks, and waits for an event if it is to.
SHARED void has_looked(int over, int waits) {
    char byte = waits;
    OK(write(over, &byte, 1));
    OK(read(over, &byte, 1));
}

SHARED void pass_set(int fd, int preloaded) {
    int over[2];
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, over));
    if (!preloaded) OK(unsetenv("LD_PRELOAD"));
    pid_t child = OK(fork());
    if (child == 0) {
        OK(close(fd));
        OK(close(over[0]));
        OK(execv(self(), words_again(self(), preloaded ? "preloaded" : "stranger", over[1])));
    }
    int set = new_set();
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x123456789abcdef};
    OK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    talk_by_set("before", set, fd);
    send_text(fd, "next");
    settle(fd, 4);
    pass(over[0], set);
    has_looked(over[0], 1);
    say_event("this process", set, -1);
    hear(fd, 4);
    event.events = EPOLLOUT;
    OK(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    has_looked(over[0], 1);
    event.events = EPOLLIN;
    OK(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
    has_looked(over[0], 0);
    talk_by_set("after", set, fd);
    send_text(fd, "next");
    settle(fd, 4);
    OK(control(set, EPOLL_CTL_DEL, fd, 0));
    has_looked(over[0], 0);
    OK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    has_looked(over[0], 1);
    hear(fd, 4);
    // A connection that begins in such a set.
    int other = connected();
    OK(control(set, EPOLL_CTL_ADD, other, EPOLLIN));
    talk_by_set("a connection of its own", set, other);
    send_text(other, "next");
    settle(other, 4);
    has_looked(over[0], 1);
    hear(other, 4);
    OK(close(other));
    send_text(fd, "last");
    settle_end(fd);
    has_looked(over[0], 1);
    say_child("child", child);
}

SHARED void partner_of_sets(int fd) {
    for (int i = 0; i < 2; i++) {
        listen_by_set(fd);
        hear(fd, 4);
        send_text(fd, "data");
    }
    int other = connected();
    listen_by_set(other);
    hear(other, 4);
    send_text(other, "data");
    recv_to_end(other);
    hear(fd, 4);
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

#endif
