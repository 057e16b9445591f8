// exec into a program that is not preloaded: it took LD_PRELOAD out of the environment.
#include "talk.h"

static void again(const char *what, int fd) {
    say("preloaded: %d", getenv("LD_PRELOAD") != NULL);
    recv_filled(fd, 50000);
    talk(what, fd, fd);
}

static void subject(int fd) {
    settle(fd, 20000);
    OK(unsetenv("LD_PRELOAD"));
    pid_t child = OK(fork());
    if (child == 0) OK(execv(self(), words_again(self(), "the stranger", fd)));
    OK(close(fd));
    say_child("child", child);
}

static void partner(int fd) {
    send_filled(fd, 50000);
    listen_to_talk(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
