// Closing with unread data resets the connection: the peer's read and write say so.
#include "dual.h"

static void subject(int fd) {
    settle(fd, 6);
    TRY(close(fd));
    tell();
}

static void partner(int fd) {
    signal(SIGPIPE, SIG_IGN);
    send_text(fd, "unread");
    await();
    say_poll("reset", fd, POLLIN | POLLOUT | POLLRDHUP, -1);
    TRY(recv(fd, buf, 1, 0));
    TRY(recv(fd, buf, 1, 0));
    TRY(send(fd, "x", 1, 0));
    TRY(send(fd, "x", 1, 0));
}

SUBJECT_AND_PARTNER(subject, partner)
