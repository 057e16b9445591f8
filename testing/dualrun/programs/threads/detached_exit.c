// A thread opens the connection and ends; another uses it; the process exits while a third waits on it.
#include "dual.h"

static volatile int waiting;

static void *opens(void *with) {
    *(int *)with = connected();
    return NULL;
}

static void *uses(void *with) {
    send_text(*(int *)with, "from another thread");
    hear(*(int *)with, 2);
    return NULL;
}

static void *waits(void *with) {
    waiting = gettid();
    recv(*(int *)with, buf, 1, 0);
    return NULL;
}

static void subject(void) {
    static int fd;
    finish(start(opens, &fd));
    finish(start(uses, &fd));
    start(waits, &fd);
    while (waiting == 0) sched_yield();
    wait_asleep(waiting);
    send_text(fd, "last words");
}

static void partner(void) {
    int fd = connected();
    hear(fd, 19);
    send_text(fd, "ok");
    hear(fd, 10);
    TRY(recv(fd, buf, 1, 0));
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
