// Several execs after each other, each program taking a few turns.
#include "talk.h"

static void again(const char *what, int fd) {
    int left = atoi(what);
    talk(what, fd, fd);
    char next[16];
    snprintf(next, sizeof next, "%d", left - 1);
    if (left > 1) OK(execv(self(), words_again(self(), next, fd)));
}

static void subject(int fd) { OK(execv(self(), words_again(self(), "5", fd))); }

static void partner(int fd) {
    for (int i = 0; i < 5; i++) listen_to_talk(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
