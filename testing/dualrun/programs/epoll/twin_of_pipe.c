// A set with a connection and a pipe, whose number is closed while another, or a child alone, keeps it open: the set goes on telling of it, to who waits for it,
// to poll, and to another set.
#include "epoll.h"

enum { WAIT_MS = 10000 };

// What those who look at the set without taking anything from it see.
static void look(const char *when, int set, int outer, int timeout) {
    say_poll(when, set, POLLIN, timeout);
    say_set(when, outer, timeout);
    say_set(when, set, 0);
}

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN), outer = set_of(set, EPOLLIN), ends[2], twin, byte;
    OK(pipe(ends));
    OK(control(set, EPOLL_CTL_ADD, ends[0], EPOLLIN));
    look("nothing yet", set, outer, 0);
    twin = OK(dup(ends[0]));
    OK(close(ends[0]));
    look("idle", set, outer, 0);
    say_poll("idle for a while", set, POLLIN, 20);
    OK(write(ends[1], "x", 1));
    look("the pipe", set, outer, WAIT_MS);
    OK(read(twin, &byte, 1));
    look("taken", set, outer, 0);
    meet();
    look("the connection", set, outer, WAIT_MS);
    settle(fd, 4);
    hear(fd, 4);
    look("that, too", set, outer, 0);
    OK(close(twin));
    OK(close(ends[1]));
    look("without the pipe", set, outer, 0);

    int more[2], ready[2];
    OK(pipe(more));
    OK(pipe(ready));
    pid_t child = OK(fork());
    if (child == 0) {
        OK(close(fd));
        OK(read(ready[0], &byte, 1));
        OK(write(more[1], "x", 1));
        OK(read(ready[0], &byte, 1));
        _exit(0);
    }
    // Of its own.
    int set_after = set_of(fd, EPOLLIN), outer_after = set_of(set_after, EPOLLIN);
    OK(control(set_after, EPOLL_CTL_ADD, more[0], EPOLLIN));
    OK(close(more[0]));
    look("idle, the child has it", set_after, outer_after, 0);
    OK(write(ready[1], "", 1));
    look("the child's", set_after, outer_after, WAIT_MS);
    OK(write(ready[1], "", 1));
    say_child("child", child);
    look("without the child", set_after, outer_after, 0);
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
