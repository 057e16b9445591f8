// What is corked comes all the same after a while, where the cork is never drawn; and what reads it may be asleep.
#include "dual.h"

static void subject(int fd) {
    int on = 1;
    OK(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on));
    for (int i = 0; i < 3; i++) {
        send_text(fd, "corked");
        hear(fd, 2);
    }
    socklen_t length = sizeof on;
    on = -1;
    OK(getsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, &length));
    say("cork %d", on);
}

static void partner(int fd) {
    for (int i = 0; i < 3; i++) {
        hear(fd, 6);
        send_text(fd, "ok");
    }
}

SUBJECT_AND_PARTNER(subject, partner)
