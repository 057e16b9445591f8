// A thread takes a table of descriptors of its own (unshare) and closes what it has there: the other threads keep theirs.
#include "dual.h"

static void *apart(void *with) {
    int fd = *(int *)with;
    TRY(unshare(CLONE_FILES));
    TRY(close(fd));
    TRY(recv(fd, buf, 1, MSG_DONTWAIT));
    return NULL;
}

static void subject(int fd) {
    finish(start(apart, &fd));
    send_text(fd, "here");
    hear(fd, 5);
    send_filled(fd, 400000);
    TRY(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

static void partner(int fd) {
    hear(fd, 4);
    send_text(fd, "still");
    recv_filled(fd, 400000);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
