// SO_RCVBUF and SO_SNDBUF, which the kernel doubles; the connection goes on with both small.
#include "dual.h"

static void subject(int fd) {
    int size = 20000, got;
    socklen_t length = sizeof got;
    TRY(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size));
    TRY(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
    OK(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &length));
    say("%d", got);
    OK(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &got, &length));
    say("%d", got);
    send_filled(fd, 200000);
    hear(fd, 2);
}

static void partner(int fd) {
    recv_filled(fd, 200000);
    send_text(fd, "ok");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
