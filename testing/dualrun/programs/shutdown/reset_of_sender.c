// A sender that waits for room when the connection is reset is told how much it sent, and of the reset by the next call.
#include "dual.h"

static void subject(int fd) {
    signal(SIGPIPE, SIG_IGN);
    fill(buf, sizeof buf, 0);
    tell_number(gettid());
    size_t total = 0;
    ssize_t sent;
    while ((sent = send(fd, buf, sizeof buf, 0)) > 0) total += sent;
    say("some left: %d, then %s", total > 0, strerrorname_np(errno));
    TRY(send(fd, "x", 1, 0));
    TRY(recv(fd, buf, 1, 0));
}

static void partner(int fd) {
    struct linger now = {1, 0};
    OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now));
    wait_asleep(await_number());
    OK(close(fd));
}

SUBJECT_AND_PARTNER(subject, partner)
