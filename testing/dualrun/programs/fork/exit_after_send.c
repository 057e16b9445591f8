// A child sends and is gone by _exit at once: everything arrives, and the parent goes on after it.
#include "dual.h"

static void subject(int fd) {
    for (int i = 0; i < 3; i++) {
        pid_t child = OK(fork());
        if (child == 0) {
            send_filled(fd, 50000);
            _exit(0);
        }
        say_child("child", child);
    }
    send_filled(fd, 50000);
    _exit(5);
}

static void partner(int fd) {
    for (int i = 0; i < 4; i++) recv_filled(fd, 50000);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
