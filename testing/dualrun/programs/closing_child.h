// A child closes its copy of a connection that is in a set which both have; the parent is told of that connection as before.
#ifndef DUAL_CLOSING_CHILD_H
#define DUAL_CLOSING_CHILD_H

#include "epoll.h"

// With a set of its own. The child looks at it before, or does not.
SHARED void beside_closing_child(int fd, unsigned wanted, int looks) {
    int set = set_of(fd, wanted), pipes[2];
    say_set("before", set, -1);
    hear(fd, 4);
    OK(pipe(pipes));
    pid_t parent = getpid(), child = OK(fork());
    if (child == 0) {
        if (looks) say_set("in the child", set, 0);
        OK(close(fd));
        OK(write(pipes[1], "", 1));
        wait_asleep(parent);
        tell();
        _exit(0);
    }
    OK(read(pipes[0], buf, 1));
    say_set("after", set, -1);
    hear(fd, 4);
    say_child("child", child);
    OK(close(set));
    OK(close(pipes[0]));
    OK(close(pipes[1]));
}

SHARED void say_the_end(int fd) {
    OK(shutdown(fd, SHUT_WR));
    say_set("the end", set_of(fd, EPOLLIN), -1);
}

SHARED void send_in_pairs(int fd, int pairs) {
    for (int i = 0; i < pairs; i++) {
        await();
        send_text(fd, "data");
        await();
        send_text(fd, "more");
    }
    recv_to_end(fd);
}

#endif
