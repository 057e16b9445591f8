// The error of a reset connection is told once: to getsockopt if it asks first.
#include "dual.h"

static void subject(int fd) {
    settle(fd, 6);
    TRY(close(fd));
    tell();
}

static void partner(int fd) {
    int error;
    socklen_t length = sizeof error;
    send_text(fd, "unread");
    await();
    settle_end(fd);
    OK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
    say("error %s", strerrorname_np(error));
    OK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
    say("error %d", error);
    TRY(recv(fd, buf, 1, 0));
    TRY(send(fd, "x", 1, MSG_NOSIGNAL));
}

SUBJECT_AND_PARTNER(subject, partner)
