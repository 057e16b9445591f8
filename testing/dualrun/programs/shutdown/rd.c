// SHUT_RD: what is there can be read, then the end; the other end may still send, and notices nothing.
#include "dual.h"

static void subject(int fd) {
    settle(fd, 6);
    TRY(shutdown(fd, SHUT_RD));
    say_poll("shut", fd, POLLIN | POLLRDHUP | POLLOUT, 0);
    TRY(recv(fd, buf, 6, 0));
    TRY(recv(fd, buf, 6, 0));
    tell();
    await();
    TRY(send(fd, "still", 5, 0));
    TRY(shutdown(fd, SHUT_WR));
}

static void partner(int fd) {
    send_text(fd, "before");
    await();
    TRY(send(fd, "after", 5, 0));
    tell();
    hear(fd, 5);
    settle_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
