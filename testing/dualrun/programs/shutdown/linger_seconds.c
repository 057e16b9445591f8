// SO_LINGER with time: close waits until the peer has the data, which it gets in full.
#include "dual.h"

static void subject(int fd) {
    struct linger some = {1, 20}, got = {0, 0};
    socklen_t length = sizeof got;
    OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &some, sizeof some));
    OK(getsockopt(fd, SOL_SOCKET, SO_LINGER, &got, &length));
    say("linger %d %d", got.l_onoff, got.l_linger);
    send_filled(fd, 500000);
    TRY(close(fd));
}

static void partner(int fd) { recv_to_end(fd); }

SUBJECT_AND_PARTNER(subject, partner)
