// SO_LINGER with no time: close resets, whatever was read.
#include "dual.h"

static void subject(int fd) {
    struct linger now = {1, 0};
    OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now));
    meet();
    TRY(close(fd));
}

static void partner(int fd) {
    meet();
    TRY(recv(fd, buf, 1, 0));
    TRY(recv(fd, buf, 1, 0));
    TRY(send(fd, "x", 1, MSG_NOSIGNAL));
}

SUBJECT_AND_PARTNER(subject, partner)
