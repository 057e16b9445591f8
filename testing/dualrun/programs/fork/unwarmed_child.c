// The connection is made, and forked at once; the two processes then use it so much that it would be upgraded.
#include "dual.h"

static void subject(void) {
    int fd = connected_by(AF_INET);
    pid_t child = OK(fork());
    if (child == 0) {
        warm_up(fd);
        send_text(fd, "child");
        _exit(0);
    }
    say_child("child", child);
    warm_up(fd);
    send_text(fd, "parent");
    recv_filled(fd, 300000);
}

static void partner(void) {
    int fd = connected_by(AF_INET);
    warm_up(fd);
    hear(fd, 5);
    warm_up(fd);
    hear(fd, 6);
    send_filled(fd, 300000);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
