// close_range closes connections with the rest, or marks them for exec.
#include "dual.h"
#include <linux/close_range.h>

static void subject(void) {
    int fds[2];
    connected_twice(fds);
    OK(dup2(fds[0], 700));
    OK(dup2(fds[1], 750));
    OK(close(fds[0]));
    OK(close(fds[1]));
    TRY(close_range(740, 760, CLOSE_RANGE_CLOEXEC));
    TRY(fcntl(750, F_GETFD));
    send_text(700, "last");
    TRY(close_range(690, 710, 0));
    TRY(send(700, "x", 1, 0));
    TRY(close_range(10, 5, 0));
    TRY(close_range(10, 20, 64));
    send_text(750, "other");
    TRY(close_range(600, 800, 0));
    TRY(fcntl(750, F_GETFD));
    await();
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    hear(fds[0], 5);
    hear(fds[1], 6);
    tell();
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
