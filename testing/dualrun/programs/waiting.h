// A thread that waits on a set while the program changes it.
#ifndef DUAL_WAITING_H
#define DUAL_WAITING_H

#include "epoll.h"

static int waiting_set;
static volatile int waiting_tid;

SHARED void *waits(void *when) {
    waiting_tid = gettid();
    say_set(when, waiting_set, -1);
    return NULL;
}

SHARED pthread_t waiting_on(int set, const char *when) {
    waiting_set = set;
    waiting_tid = 0;
    pthread_t thread = start(waits, (void *)when);
    while (waiting_tid == 0) sched_yield();
    wait_asleep(waiting_tid);
    return thread;
}

#endif
