// A handler leaves a recv that waits by siglongjmp, again and again, as programs do that know no other time-out; then the connection is closed: the peer sees
// the end.
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
    handle(SIGALRM, leaves, SA_RESTART);
    alarms_every_ms(10);
    for (int round = 0; round < 3; round++) {
        if (sigsetjmp(back, 1) == 0) {
            waiting = 1;
            recv(fd, buf, 10, 0);
            say("recv came back");
        }
    }
    alarms_every_ms(0);
    OK(close(fd));
    await();
}

static void partner(int fd) {
    recv_to_end(fd);
    tell();
}

SUBJECT_AND_PARTNER(subject, partner)
