// As silent, and the other end becomes a program without a dynamic linker, too.
#include "silent.h"

static void again(const char *what, int fd) {
    if (!strcmp(what, "the other")) {
        listen_to_talk(fd);
        recv_to_end(fd);
        return;
    }
    tell();
    recv_filled(fd, UNREAD);
    talk(what, fd, fd);
}

static void partner(int fd) {
    be_silent(fd);
    char *program = getenv("DUAL_STATIC");
    OK(execv(program, words_again(program, "the other", fd)));
}

SUBJECT_AND_PARTNER_AND_AGAIN(become_static, partner)
