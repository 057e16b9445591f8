// exec into a program like this one, with the connection at its number.
#include "talk.h"

static void again(const char *what, int fd) {
    talk(what, fd, fd);
    hear(fd, 4);
}

static void subject(int fd) {
    send_text(fd, "first ");
    OK(execv(self(), words_again(self(), "the next program", fd)));
}

static void partner(int fd) {
    hear(fd, 6);
    listen_to_talk(fd);
    send_text(fd, "last");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
