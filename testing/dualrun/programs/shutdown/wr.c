// SHUT_WR: the peer reads to the end and may go on sending.
#include "dual.h"

static void subject(int fd) {
    send_filled(fd, 100000);
    TRY(shutdown(fd, SHUT_WR));
    signal(SIGPIPE, SIG_IGN);
    TRY(send(fd, "x", 1, 0));
    say_poll("shut", fd, POLLIN | POLLRDHUP | POLLOUT, 0);
    tell();
    recv_to_end(fd);
    say_poll("both shut", fd, POLLIN | POLLRDHUP | POLLOUT, 0);
}

static void partner(int fd) {
    recv_to_end(fd);
    say_poll("peer shut", fd, POLLIN | POLLRDHUP | POLLOUT, -1);
    await();
    send_filled(fd, 100000);
    TRY(shutdown(fd, SHUT_WR));
}

SUBJECT_AND_PARTNER(subject, partner)
