// Another program, started by posix_spawn, closes its copy of a connection that is in a set which both have: this one is told of it as before.
#include "inherited.h"
#include <spawn.h>

static void again(const char *what, int fd) {
    say("%s", what);
    OK(close(fd));
    // Out of a process that has the set still.
    wait_asleep(getppid());
    int over = atoi(getenv("DUAL_OVER"));
    OK(write(over, "go", 2));
    OK(read(over, buf, 1));
}

static void subject(int fd) {
    int set = set_to_inherit(), over[2];
    OK(control(set, EPOLL_CTL_ADD, fd, EPOLLIN));
    say_event("before", set, -1);
    hear(fd, 4);
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, over));
    OK(fcntl(over[0], F_SETFD, FD_CLOEXEC));
    char number[16];
    snprintf(number, sizeof number, "%d", over[1]);
    OK(setenv("DUAL_OVER", number, 1));
    pid_t child;
    ZERO(posix_spawn(&child, self(), NULL, NULL, words_again(self(), "the spawned", fd), environ));
    OK(read(over[0], buf, 2));
    send_text(fd, "next");
    say_event("after", set, -1);
    hear(fd, 4);
    talk_by_set("this program", set, fd);
    OK(write(over[0], "", 1));
    say_child("child", child);
}

static void partner(int fd) {
    send_text(fd, "data");
    hear(fd, 4);
    send_text(fd, "more");
    listen_by_set(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
