// A child becomes a static program with the connection, while the parent keeps it; then the parent goes on.
#include "talk.h"

static void again(const char *what, int fd) { talk(what, fd, fd); }

static void subject(int fd) {
    pid_t child = OK(fork());
    if (child == 0) {
        char *program = getenv("DUAL_STATIC");
        OK(execv(program, words_again(program, "the static program", fd)));
    }
    say_child("child", child);
    talk("the parent", fd, fd);
}

static void partner(int fd) {
    listen_to_talk(fd);
    listen_to_talk(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
