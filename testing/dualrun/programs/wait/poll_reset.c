// POLLERR and POLLHUP after a reset, and once the error has been told.
#include "dual.h"

static void subject(int fd) {
    struct pollfd one = {.fd = fd, .events = 0};
    tell();
    await();
    TRY(poll(&one, 1, -1));
    say_poll("reset", fd, POLLIN | POLLOUT | POLLRDHUP, 0);
    TRY(recv(fd, buf, 1, 0));
    say_poll("told", fd, POLLIN | POLLOUT | POLLRDHUP, 0);
    TRY(recv(fd, buf, 1, 0));
}

static void partner(int fd) {
    struct linger now = {1, 0};
    OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now));
    await(); // a reset that overtakes connect is connect's: ECONNRESET
    OK(close(fd));
    tell();
}

SUBJECT_AND_PARTNER(subject, partner)
