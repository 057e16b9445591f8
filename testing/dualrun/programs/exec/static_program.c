// exec into a program without a dynamic linker: it goes on over TCP, with data unread on both sides.
#include "talk.h"

static void again(const char *what, int fd) {
    recv_filled(fd, 50000);
    talk(what, fd, fd);
    hear(fd, 4);
}

static void subject(int fd) {
    settle(fd, 20000);
    send_filled(fd, 30000);
    char *program = getenv("DUAL_STATIC");
    OK(execv(program, words_again(program, "the static program", fd)));
}

static void partner(int fd) {
    send_filled(fd, 50000);
    recv_filled(fd, 30000);
    listen_to_talk(fd);
    send_text(fd, "last");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
