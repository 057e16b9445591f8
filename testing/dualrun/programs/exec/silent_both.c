// As silent, with bytes unread at both ends, and the other end sends first.
#include "silent.h"

static void again(const char *what, int fd) {
    tell();
    recv_filled(fd, UNREAD);
    hear(fd, 5);
    talk(what, fd, fd);
    hear(fd, 4);
}

static void subject(int fd) {
    send_filled(fd, 30000);
    become_static(fd);
}

static void partner(int fd) {
    be_silent(fd);
    send_text(fd, "first");
    recv_filled(fd, 30000);
    listen_to_talk(fd);
    send_text(fd, "last");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
