// select at the end of a stream and after a reset; out-of-band data is an exceptional condition.
#include "dual.h"
#include <sys/select.h>

static void look(const char *when, int fd, int wait) {
    fd_set in, out, except;
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_ZERO(&except);
    FD_SET(fd, &in);
    if (!wait) FD_SET(fd, &out);
    FD_SET(fd, &except);
    struct timeval zero = {0, 0};
    int count = select(fd + 1, &in, &out, &except, wait ? NULL : &zero);
    say("%s: %d, in %d, out %d, except %d", when, count, FD_ISSET(fd, &in) != 0, FD_ISSET(fd, &out) != 0,
        FD_ISSET(fd, &except) != 0);
}

static void subject(void) {
    int fds[2];
    connected_twice(fds);
    meet();
    say_poll("urgent", fds[0], POLLPRI, -1);
    look("urgent", fds[0], 0);
    TRY(recv(fds[0], buf, 1, MSG_OOB));
    tell();
    settle_end(fds[0]);
    look("end", fds[0], 1);
    TRY(recv(fds[0], buf, 1, 0));
    tell();
    struct pollfd reset = {.fd = fds[1], .events = 0};
    OK(poll(&reset, 1, -1));
    look("reset", fds[1], 0);
    TRY(recv(fds[1], buf, 1, 0));
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    meet();
    OK(send(fds[0], "!", 1, MSG_OOB));
    await();
    OK(shutdown(fds[0], SHUT_WR));
    await();
    struct linger now = {1, 0};
    OK(setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &now, sizeof now));
    OK(close(fds[1]));
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
