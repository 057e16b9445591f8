// A child closes its copy of a connection that is in a set which both have: the parent is told of it as before.
#include "epoll.h"

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN), pipes[2];
    say_set("before", set, -1);
    hear(fd, 4);
    OK(pipe(pipes));
    pid_t parent = getpid(), child = OK(fork());
    if (child == 0) {
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
    OK(shutdown(fd, SHUT_WR));
    say_set("the end", set, -1);
}

static void partner(int fd) {
    send_text(fd, "data");
    await();
    send_text(fd, "more");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
