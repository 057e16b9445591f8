// Data sent, then close at once: the receiver gets all of it. With exit instead of close, too.
#include "dual.h"

static void subject(int fd) {
    send_filled(fd, 200000);
    OK(close(fd));
    fd = connected();
    send_filled(fd, 1000000);
    exit(0);
}

static void partner(int fd) {
    recv_to_end(fd);
    fd = connected();
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
