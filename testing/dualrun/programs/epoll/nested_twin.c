// A set in another, whose number is closed while a duplicate keeps it open: the outer one goes on telling of it until the last of its numbers is closed.
#include "epoll.h"

enum { WAIT_MS = 10000 };

// What they are at `kind`.
static void look(const char *when, unsigned kind, int outer, int timeout) {
    char what[64];
    snprintf(what, sizeof what, "%s%s%s", when, kind & EPOLLET ? ", by edges" : "", kind & EPOLLONESHOT ? ", once" : "");
    say_set(what, outer, timeout);
}

static int gone(int fd) {
    int twin = OK(dup(fd));
    OK(close(fd));
    return twin;
}

static void there_first(int fd, unsigned kind) {
    int inner = set_of(fd, EPOLLIN), outer = set_of(inner, EPOLLIN | kind);
    look("nothing yet", kind, outer, 0);
    int twin = gone(inner);
    look("idle", kind, outer, 0);
    meet();
    look("the connection", kind, outer, WAIT_MS);
    look("again", kind, outer, 0);
    say_poll("from outside", outer, POLLIN, 0);
    settle(fd, 4);
    hear(fd, 4);
    look("taken", kind, outer, 0);
    // By its own number once more.
    OK(dup2(twin, inner));
    TRY(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN | kind));
    meet();
    look("asked again", kind, outer, WAIT_MS);
    settle(fd, 4);
    OK(close(twin));
    OK(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN | kind));
    look("by its first number alone", kind, outer, 0);
    OK(close(inner));
    look("closed", kind, outer, 0);
    hear(fd, 4);
    OK(close(outer));
}

static void there_later(int fd, unsigned kind) {
    int inner = new_set(), outer = set_of(inner, EPOLLIN | kind), ends[2], byte;
    OK(pipe(ends));
    OK(control(inner, EPOLL_CTL_ADD, ends[0], EPOLLIN));
    int twin = gone(inner);
    look("still empty", kind, outer, 0);
    OK(control(twin, EPOLL_CTL_ADD, fd, EPOLLIN));
    look("idle", kind, outer, 0);
    meet();
    look("the connection", kind, outer, WAIT_MS);
    settle(fd, 4);
    hear(fd, 4);
    if (!(kind & EPOLLONESHOT)) {
        look("taken", kind, outer, 0);
        OK(write(ends[1], "x", 1));
        look("the pipe", kind, outer, WAIT_MS);
        look("the pipe again", kind, outer, 0);
        OK(read(ends[0], &byte, 1));
    }
    look("all taken", kind, outer, 0);
    int last = gone(twin);
    meet();
    settle(fd, 4);
    look("by a third number", kind, outer, 0);
    OK(close(last));
    look("closed", kind, outer, 0);
    hear(fd, 4);
    OK(close(outer));
    OK(close(ends[0]));
    OK(close(ends[1]));
}

static const unsigned kinds[] = {0, EPOLLET, EPOLLONESHOT};

static void subject(int fd) {
    for (int i = 0; i < 3; i++) there_first(fd, kinds[i]);
    for (int i = 0; i < 3; i++) there_later(fd, kinds[i]);
}

static void partner(int fd) {
    for (int i = 0; i < 12; i++) {
        meet();
        send_text(fd, "data");
    }
}

SUBJECT_AND_PARTNER(subject, partner)
