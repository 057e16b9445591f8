// A reader that takes one byte at a time, and one that asks how much there is each time.
#include "dual.h"

static void subject(int fd) {
    for (int i = 0; i < 20000; i++) {
        char byte;
        if (read(fd, &byte, 1) != 1 || !as_filled(&byte, 1, i)) die(__LINE__, "byte");
    }
    uint64_t at = 20000;
    while (at < 300000) {
        int have;
        OK(ioctl(fd, FIONREAD, &have));
        if (have == 0) have = 1;
        if (recv_all(fd, buf, have) != have || !as_filled(buf, have, at)) die(__LINE__, "piece");
        at += have;
    }
    say("%lu bytes", (unsigned long)at);
    TRY(recv(fd, buf, 1, 0));
}

static void partner(int fd) {
    send_filled(fd, 300000);
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
