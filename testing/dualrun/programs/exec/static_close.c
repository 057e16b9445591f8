// As static_end, and the other end closes.
#include "filling.h"

static void again(const char *what, int fd) { recv_after(what, fd); }

static void subject(int fd) {
    settle(fd, 20000);
    OK(fcntl(CHANNEL, F_SETFD, 0));
    char *program = getenv("DUAL_STATIC");
    OK(execv(program, words_again(program, "the static program", fd)));
}

static void partner(int fd) {
    tell_number(fill_up(fd));
    OK(close(fd));
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
