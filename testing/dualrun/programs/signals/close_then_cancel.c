// A connection is closed while a thread waits in recv on it, and then that thread is cancelled: the peer sees the end.
#include "dual.h"

static int connection;
static volatile int tid;

static void *receives(void *with) {
    tid = gettid();
    recv(connection, buf, 10, 0);
    return with;
}

static void subject(int fd) {
    connection = fd;
    pthread_t thread = start(receives, NULL);
    while (tid == 0) sched_yield();
    wait_asleep(tid);
    OK(close(fd));
    ZERO(pthread_cancel(thread));
    say("cancelled: %d", finish(thread) == PTHREAD_CANCELED);
    await();
}

static void partner(int fd) {
    recv_to_end(fd);
    tell();
}

SUBJECT_AND_PARTNER(subject, partner)
