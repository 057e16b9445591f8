// The only thread of a program takes a table of descriptors of its own: connections from before are its own as ever, and end when it closes them.
#include "dual.h"

static void subject(int fd) {
    TRY(unshare(CLONE_FILES));
    send_text(fd, "here");
    hear(fd, 5);
    send_filled(fd, 400000);
    TRY(close(fd));
    TRY(recv(fd, buf, 1, MSG_DONTWAIT));
    await();
}

static void partner(int fd) {
    hear(fd, 4);
    send_text(fd, "still");
    recv_filled(fd, 400000);
    recv_to_end(fd);
    tell();
}

SUBJECT_AND_PARTNER(subject, partner)
