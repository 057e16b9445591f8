// The child closes its copy, or exits with it open: nothing happens to the parent's.
#include "dual.h"

static void subject(int fd) {
    for (int round = 0; round < 4; round++) {
        pid_t child = OK(fork());
        if (child == 0) {
            if (round == 0) OK(close(fd));
            if (round == 3) exit(round);
            _exit(round);
        }
        say_child("child", child);
        send_text(fd, "ping");
        hear(fd, 4);
    }
}

static void partner(int fd) {
    for (int round = 0; round < 4; round++) {
        hear(fd, 4);
        send_text(fd, "pong");
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
