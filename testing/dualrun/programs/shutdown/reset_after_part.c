// A call that has moved some bytes when it finds the connection reset returns them, and the error is the next call's.
#include "dual.h"

static char first[10], second[10];

static void arrives_and_is_reset(int fd) {
    settle(fd, 10);
    tell();
    await();
}

static void subject(void) {
    signal(SIGPIPE, SIG_IGN);
    struct iovec both[] = {{first, 10}, {second, 10}};

    int fd = connected();
    arrives_and_is_reset(fd);
    TRY(readv(fd, both, 2));
    TRY(read(fd, buf, 10));
    TRY(read(fd, buf, 10));

    fd = connected();
    arrives_and_is_reset(fd);
    TRY(recv(fd, buf, 20, MSG_WAITALL));
    int error = -1;
    socklen_t len = sizeof error;
    OK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
    say("SO_ERROR: %s", strerrorname_np(error));
    TRY(read(fd, buf, 10));

    fd = connected();
    arrives_and_is_reset(fd);
    TRY(recv(fd, buf, 20, MSG_WAITALL | MSG_TRUNC));
    TRY(send(fd, "x", 1, 0));
    TRY(send(fd, "x", 1, 0));
    TRY(read(fd, buf, 10));
}

static void partner(void) {
    struct linger now = {1, 0};
    for (int i = 0; i < 3; i++) {
        int fd = connected();
        send_text(fd, "ten bytes.");
        await();
        OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now));
        OK(close(fd));
        tell();
    }
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
