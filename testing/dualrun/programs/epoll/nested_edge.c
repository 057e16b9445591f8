// A set that is an edge-triggered member of another is reported when something comes, and not again for what is still there.
#include "epoll.h"

// What comes from the other end, and has come.
static int unread;

static void more(int fd) {
    tell();
    settle(fd, unread += 4);
}

static void take(int fd, int length) {
    hear(fd, length);
    unread -= length;
}

static void one_inner(int fd, unsigned wanted) {
    say("inner %s%s", events(wanted & 0xffff), wanted & EPOLLET ? ", edge" : "");
    int inner = set_of(fd, wanted), outer = set_of(inner, EPOLLIN | EPOLLET), level = set_of(inner, EPOLLIN);
    int outermost = set_of(outer, EPOLLIN), top = set_of(outer, EPOLLIN | EPOLLET);
    say_set("outer at first", outer, 0);
    say_set("outer at second", outer, 0);
    more(fd);
    say_poll("outer", outer, POLLIN, 0);
    say_set("top", top, 0);
    say_set("top again", top, 0);
    say_set("outermost", outermost, 0);
    say_set("outer", outer, -1);
    say_set("outer again", outer, 0);
    say_poll("outer again", outer, POLLIN, 0);
    say_set("outermost", outermost, 0);
    say_set("level", level, 0);
    take(fd, 2);
    say_set("outer, some taken", outer, 0);
    more(fd);
    say_set("outer, more", outer, -1);
    say_set("outer, more, again", outer, 0);
    say_set("inner", inner, 0);
    say_set("inner again", inner, 0);
    say_set("outer after inner", outer, 0);
    say_set("level", level, 0);
    take(fd, unread);
    say_set("level, all taken", level, 0);
    say_set("outer, all taken", outer, 0);
    more(fd);
    take(fd, unread);
    // A connection that is watched by edges for both would be told to have room, though it always had.
    if (!(wanted & EPOLLET && wanted & EPOLLOUT)) say_set("outer, come and gone", outer, 0);
    more(fd);
    OK(control(inner, EPOLL_CTL_MOD, fd, wanted));
    say_set("outer, once for both", outer, 0);
    say_set("outer, once for both, again", outer, 0);
    OK(control(inner, EPOLL_CTL_MOD, fd, wanted));
    say_set("outer, inner modified", outer, 0);
    say_set("outer, inner modified, again", outer, 0);
    OK(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN | EPOLLET));
    say_set("outer modified", outer, 0);
    say_set("outer modified, again", outer, 0);
    OK(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN | EPOLLET | EPOLLONESHOT));
    say_set("outer once", outer, 0);
    more(fd);
    say_set("outer once, again", outer, 0);
    take(fd, unread);
    OK(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN | EPOLLET));
    say_set("outer modified, nothing there", outer, 0);
    OK(control(inner, EPOLL_CTL_DEL, fd, 0));
    more(fd);
    say_set("outer, inner empty", outer, 0);
    OK(control(inner, EPOLL_CTL_ADD, fd, wanted));
    say_set("outer, inner filled", outer, 0);
    say_set("outer, inner filled, again", outer, 0);
    take(fd, unread);
    int all[] = {inner, outer, level, outermost, top};
    for (int i = 0; i < 5; i++) OK(close(all[i]));
}

// Asleep, with bytes that it was told of still there and without.
static void asleep(int fd, unsigned wanted) {
    int inner = set_of(fd, wanted), outer = set_of(inner, EPOLLIN | EPOLLET), top = set_of(outer, EPOLLIN | EPOLLET);
    for (int i = 0; i < 20; i++) {
        tell();
        say_set("woken", i % 2 ? top : outer, -1);
        settle(fd, unread += 4);
        if (i % 4 == 1) take(fd, 4);
        if (i % 4 == 3) take(fd, unread);
        if (i % 5 == 2) say_set("inner", inner, 0);
    }
    take(fd, unread);
    OK(close(top));
    OK(close(outer));
    OK(close(inner));
}

// Beside a descriptor that only the kernel knows.
static void mixed(int fd) {
    int pipes[2], inner = set_of(fd, EPOLLIN), outer = set_of(inner, EPOLLIN | EPOLLET);
    OK(pipe(pipes));
    OK(control(inner, EPOLL_CTL_ADD, pipes[0], EPOLLIN));
    say_set("nothing", outer, 0);
    OK(write(pipes[1], "x", 1));
    say_set("pipe", outer, -1);
    say_set("pipe, again", outer, 0);
    OK(write(pipes[1], "x", 1));
    say_set("pipe, more", outer, 0);
    OK(read(pipes[0], buf, 2));
    say_set("pipe, taken", outer, 0);
    more(fd);
    say_set("both", outer, -1);
    say_set("both, again", outer, 0);
    take(fd, unread);
    say_set("taken", outer, 0);
    OK(close(outer));
    OK(close(inner));
}

static void subject(int fd) {
    one_inner(fd, EPOLLIN);
    one_inner(fd, EPOLLIN | EPOLLET);
    one_inner(fd, EPOLLIN | EPOLLOUT | EPOLLET);
    one_inner(fd, EPOLLIN | EPOLLOUT);
    asleep(fd, EPOLLIN);
    asleep(fd, EPOLLIN | EPOLLET);
    mixed(fd);
    int inner = set_of(fd, EPOLLIN | EPOLLRDHUP), outer = set_of(inner, EPOLLIN | EPOLLET);
    more(fd);
    say_set("data", outer, -1);
    say_set("data, again", outer, 0);
    tell_number(1);
    settle_end(fd);
    say_set("end", outer, -1);
    say_set("end, again", outer, 0);
    take(fd, unread);
    say_set("end alone", outer, 0);
    say_set("inner", inner, 0);
}

static void partner(int fd) {
    int on = 1;
    OK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    while (await_number() == 0) send_text(fd, "data");
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
