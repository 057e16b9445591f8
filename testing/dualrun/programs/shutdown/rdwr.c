// SHUT_RDWR: nothing goes any more; the fd stays open.
#include "dual.h"

static void subject(int fd) {
    signal(SIGPIPE, SIG_IGN);
    send_text(fd, "last");
    TRY(shutdown(fd, SHUT_RDWR));
    say_poll("shut", fd, POLLIN | POLLRDHUP | POLLOUT, 0);
    TRY(recv(fd, buf, 1, 0));
    TRY(send(fd, "x", 1, 0));
    TRY(write(fd, "x", 1));
    await();
    TRY(close(fd));
    TRY(close(fd));
}

static void partner(int fd) {
    recv_to_end(fd);
    tell();
}

SUBJECT_AND_PARTNER(subject, partner)
