// As silent, and the other end exits: all comes before the end.
#include "silent.h"

static void again(const char *what, int fd) {
    tell();
    say("%s reads", what);
    recv_to_end(fd);
}

static void partner(int fd) {
    be_silent(fd);
    _exit(0);
}

SUBJECT_AND_PARTNER_AND_AGAIN(become_static, partner)
