// Death by a fault is death like any other: what was sent arrives.
#include "dual.h"

static void subject(void) {
    for (int round = 0; round < 3; round++) {
        int fd = connected();
        pid_t child = OK(fork());
        if (child == 0) {
            send_filled(fd, 30000);
            if (round == 0) abort();
            if (round == 1) *(volatile int *)opaque(16) = 1;
            raise(SIGTERM);
        }
        OK(close(fd));
        say_child("child", child);
    }
}

static void partner(void) {
    for (int round = 0; round < 3; round++) {
        int fd = connected();
        recv_to_end(fd);
    }
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
