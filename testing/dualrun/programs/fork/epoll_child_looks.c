// A child looks at a set that it has from its parent, and closes its copy of the connection in it: the parent is told of that as before.
#include "epoll.h"

static void beside_child(int fd, unsigned wanted) {
    int set = set_of(fd, wanted), pipes[2];
    say_set("before", set, -1);
    hear(fd, 4);
    OK(pipe(pipes));
    pid_t parent = getpid(), child = OK(fork());
    if (child == 0) {
        say_set("in the child", set, 0);
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

static void subject(int fd) {
    tell();
    beside_child(fd, EPOLLIN);
    tell();
    beside_child(fd, EPOLLIN | EPOLLET);
    OK(shutdown(fd, SHUT_WR));
    say_set("the end", set_of(fd, EPOLLIN), -1);
}

static void partner(int fd) {
    for (int i = 0; i < 2; i++) {
        await();
        send_text(fd, "data");
        await();
        send_text(fd, "more");
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
