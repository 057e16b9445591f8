// How much can be read: FIONREAD (which is SIOCINQ), after arrivals, partial reads, peeks and the end.
#include "dual.h"

static int available(int fd) {
    int bytes = -1;
    TRY(ioctl(fd, FIONREAD, &bytes));
    return bytes;
}

static void subject(int fd) {
    say("%d", available(fd));
    meet();
    settle(fd, 10);
    say("%d", available(fd));
    OK(recv(fd, buf, 3, 0));
    say("%d", available(fd));
    OK(recv(fd, buf, 3, MSG_PEEK));
    say("%d", available(fd));
    hear(fd, 7);
    say("%d", available(fd));
    tell();
    settle(fd, 30000);
    say("%d", available(fd));
    OK(recv(fd, buf, 29999, MSG_WAITALL));
    settle_end(fd);
    say("%d", available(fd));
    OK(recv(fd, buf, 1, 0));
    say("%d", available(fd));
}

static void partner(int fd) {
    meet();
    send_text(fd, "0123456789");
    await();
    send_filled(fd, 30000);
    shutdown(fd, SHUT_WR);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
