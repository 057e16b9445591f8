// O_NONBLOCK is the open file's: what a child sets counts for its parent, too.
#include "dual.h"

static void by_child(int fd, int flag) {
    pid_t child = OK(fork());
    if (child == 0) {
        OK(fcntl(fd, F_SETFL, flag));
        _exit(0);
    }
    say_child("child", child);
    say("nonblocking: %d", (OK(fcntl(fd, F_GETFL)) & O_NONBLOCK) != 0);
}

static void subject(int fd) {
    by_child(fd, O_NONBLOCK);
    TRY(recv(fd, buf, 1, 0));
    OK(fcntl(fd, F_SETFL, O_NONBLOCK));
    by_child(fd, 0);
    tell_number(gettid());
    hear(fd, 4);
}

static void partner(int fd) {
    wait_asleep(await_number());
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
