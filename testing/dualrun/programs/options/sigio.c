// O_ASYNC: SIGIO when data comes.
#include "dual.h"

static volatile sig_atomic_t signals;

static void count(int signal) {
    (void)signal;
    signals++;
}

static void subject(int fd) {
    handle(SIGIO, count, SA_RESTART);
    TRY(fcntl(fd, F_SETOWN, getpid()));
    TRY(fcntl(fd, F_GETOWN) == getpid());
    OK(fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK));
    TRY((fcntl(fd, F_GETFL) & O_ASYNC) != 0);
    signals = 0;
    meet();
    while (signals == 0) sched_yield();
    settle(fd, 4);
    TRY(recv(fd, buf, 100, 0));
    signals = 0;
    meet();
    while (signals == 0) sched_yield();
    settle(fd, 4);
    TRY(recv(fd, buf, 100, 0));
    meet();
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    meet();
    send_text(fd, "more");
    meet();
}

SUBJECT_AND_PARTNER(subject, partner)
