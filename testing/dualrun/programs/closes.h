// A close beside a send that is asleep.
#ifndef CLOSES_H
#define CLOSES_H

#include "dual.h"

enum { TOTAL = 16 << 20 };
static int connection;
static volatile int sender;

SHARED void *sends_all(void *with) {
    char *data = malloc(TOTAL);
    fill(data, TOTAL, 0);
    sender = gettid();
    TRY(send(connection, data, TOTAL, 0));
    free(data);
    return with;
}

// Has a thread send more than fits, and closes the descriptor once it sleeps.
SHARED void close_beside_sender(int fd) {
    connection = fd;
    pthread_t thread = start(sends_all, NULL);
    while (sender == 0) sched_yield();
    wait_asleep(sender);
    TRY(close(fd));
    tell();
    finish(thread);
}

#endif
