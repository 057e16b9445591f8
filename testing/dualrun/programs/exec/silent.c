// exec into a program without a dynamic linker, while the other end makes no call; it receives then.
#include "silent.h"

static void again(const char *what, int fd) {
    tell();
    recv_filled(fd, UNREAD);
    talk(what, fd, fd);
    hear(fd, 4);
}

static void partner(int fd) {
    be_silent(fd);
    listen_to_talk(fd);
    send_text(fd, "last");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(become_static, partner)
