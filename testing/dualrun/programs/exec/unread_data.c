// exec with data unread, and data of ours that the peer has not read.
#include "talk.h"

static void again(const char *what, int fd) {
    say("%s", what);
    recv_filled(fd, 100000);
    send_text(fd, "got it");
    hear(fd, 4);
}

static void subject(int fd) {
    settle(fd, 50000);
    send_filled(fd, 60000);
    OK(execv(self(), words_again(self(), "the next program", fd)));
}

static void partner(int fd) {
    send_filled(fd, 100000);
    recv_filled(fd, 60000);
    hear(fd, 6);
    send_text(fd, "last");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
