// A handler leaves a recv that waits by siglongjmp; the connection is usable afterwards.
#include "alarms.h"
#include <setjmp.h>

static sigjmp_buf back;
static volatile sig_atomic_t waiting;

static void leaves(int signal) {
    (void)signal;
    if (waiting) {
        waiting = 0;
        siglongjmp(back, 1);
    }
}

static void subject(int fd) {
    for (int round = 0; round < 3; round++) {
        handle(SIGALRM, leaves, SA_RESTART);
        alarms_every_ms(10);
        if (sigsetjmp(back, 1) == 0) {
            waiting = 1;
            recv(fd, buf, 10, 0);
            say("recv came back");
        }
        alarms_every_ms(0);
        send_text(fd, "go");
        hear(fd, 4);
    }
}

static void partner(int fd) {
    for (int round = 0; round < 3; round++) {
        hear(fd, 2);
        send_text(fd, "data");
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
