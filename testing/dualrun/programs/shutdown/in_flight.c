// Shutdown with much data still on its way: the reader gets all of it, then the end.
#include "dual.h"

static void subject(int fd) {
    await();
    send_filled(fd, 3000000);
    TRY(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

static void partner(int fd) {
    tell();
    recv_filled(fd, 3000000);
    TRY(recv(fd, buf, 1, 0));
    TRY(recv(fd, buf, 1, 0));
}

SUBJECT_AND_PARTNER(subject, partner)
