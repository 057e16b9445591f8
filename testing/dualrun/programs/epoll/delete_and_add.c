// CTL_DEL and CTL_ADD of the same descriptor, with and without somebody looking in between.
#include "waiting.h"

static void say_add(const char *when, int set, int fd, unsigned wanted, unsigned long mark) {
    struct epoll_event event = {.events = wanted, .data.u64 = mark};
    if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0) say("%s: %s", when, strerrorname_np(errno));
    else say("%s: added", when);
}

static void say_mark(const char *when, int set) {
    struct epoll_event event = {0};
    int count = epoll_wait(set, &event, 1, 0);
    say("%s: %d, %lu", when, count, count > 0 ? (unsigned long)event.data.u64 : 0);
}

static void subject(int fd) {
    int set = set_of(fd, EPOLLOUT);
    say_set("out", set, -1);
    OK(control(set, EPOLL_CTL_DEL, fd, 0));
    say_set("deleted", set, 0);
    say_add("again", set, fd, EPOLLIN, 7);
    say_set("no input", set, 0);
    meet();
    settle(fd, 4);
    say_mark("input", set);

    OK(control(set, EPOLL_CTL_DEL, fd, 0));
    TRY(control(set, EPOLL_CTL_DEL, fd, 0));
    TRY(control(set, EPOLL_CTL_MOD, fd, EPOLLIN));
    say_poll("deleted, asked by poll", set, POLLIN, 0);
    say_add("with another mark", set, fd, EPOLLIN, 8);
    TRY(control(set, EPOLL_CTL_ADD, fd, EPOLLIN));
    say_poll("added, asked by poll", set, POLLIN, 0);
    say_mark("input", set);

    OK(control(set, EPOLL_CTL_DEL, fd, 0));
    say_add("edge", set, fd, EPOLLIN | EPOLLET, 9);
    say_mark("first", set);
    say_mark("second", set);
    OK(control(set, EPOLL_CTL_DEL, fd, 0));
    say_add("edge again", set, fd, EPOLLIN | EPOLLET, 10);
    say_mark("third", set);
    OK(control(set, EPOLL_CTL_DEL, fd, 0));
    say_add("exclusive", set, fd, EPOLLIN | EPOLLEXCLUSIVE, 11);
    say_mark("exclusive", set);
    OK(control(set, EPOLL_CTL_DEL, fd, 0));
    say_add("once", set, fd, EPOLLIN | EPOLLONESHOT, 12);
    say_mark("once", set);
    say_mark("not twice", set);
    OK(control(set, EPOLL_CTL_DEL, fd, 0));
    say_add("level", set, fd, EPOLLIN, 13);
    say_mark("level", set);

    // A set that is about to be another's.
    OK(control(set, EPOLL_CTL_DEL, fd, 0));
    int outer = set_of(set, EPOLLIN);
    say_set("in another set", outer, 0);
    say_add("inner", set, fd, EPOLLIN, 14);
    say_set("in another set, added", outer, 0);
    OK(control(set, EPOLL_CTL_DEL, fd, 0));
    say_set("in another set, deleted", outer, 0);
    OK(close(outer));

    // One that lives on as a duplicate.
    say_add("for a duplicate", set, fd, EPOLLIN, 15);
    say_mark("for a duplicate", set);
    OK(control(set, EPOLL_CTL_DEL, fd, 0));
    int other = OK(dup(fd));
    OK(close(fd));
    say_mark("closed after", set);
    say_add("the duplicate", set, other, EPOLLIN, 16);
    say_mark("the duplicate", set);

    // Another process waits.
    OK(control(set, EPOLL_CTL_DEL, other, 0));
    pid_t child = OK(fork());
    if (child == 0) {
        say_mark("in a child", set);
        _exit(0);
    }
    OK(waitpid(child, NULL, 0));
    say_add("beside a child", set, other, EPOLLIN, 17);

    // Another thread does.
    OK(control(set, EPOLL_CTL_DEL, other, 0));
    pthread_t thread = waiting_on(set, "another thread");
    int pair[2];
    OK(pipe(pair));
    OK(control(set, EPOLL_CTL_ADD, pair[0], EPOLLIN));
    OK(write(pair[1], "x", 1));
    finish(thread);
    hear(other, 4);
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
