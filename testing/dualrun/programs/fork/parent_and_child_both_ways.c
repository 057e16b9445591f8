// The child reads everything while the parent writes everything, at once.
#include "dual.h"

enum { TOTAL = 5 << 20 };

static void subject(int fd) {
    pid_t child = OK(fork());
    if (child == 0) {
        recv_filled(fd, TOTAL);
        TRY(recv(fd, buf, 1, 0));
        _exit(0);
    }
    send_filled(fd, TOTAL);
    OK(shutdown(fd, SHUT_WR));
    say_child("child", child);
}

static void *writes(void *with) {
    send_filled(*(int *)with, TOTAL);
    OK(shutdown(*(int *)with, SHUT_WR));
    return NULL;
}

static void partner(int fd) {
    pthread_t thread = start(writes, &fd);
    recv_to_end(fd);
    finish(thread);
}

SUBJECT_AND_PARTNER(subject, partner)
