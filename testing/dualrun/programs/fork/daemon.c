// daemon() forks, leaves its session and closes standard files; the connection goes with it.
#include "dual.h"

static void subject(int fd) {
    send_text(fd, "before ");
    OK(daemon(1, 0));
    send_text(fd, "after");
    hear(fd, 4);
    send_filled(fd, 100000);
    say("a daemon: %d", getppid() != getpgrp() && getsid(0) == getpgrp());
}

static void partner(int fd) {
    hear(fd, 12);
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
