// As silent, and the other end is killed: what it had sent was not lost over TCP.
#include "silent.h"

static void again(const char *what, int fd) {
    tell();
    say("%s reads", what);
    recv_to_end(fd);
}

static void partner(int fd) {
    pid_t child = OK(fork());
    if (child == 0) {
        be_silent(fd);
        raise(SIGKILL);
    }
    OK(close(fd));
    say_child("child", child);
}

SUBJECT_AND_PARTNER_AND_AGAIN(become_static, partner)
