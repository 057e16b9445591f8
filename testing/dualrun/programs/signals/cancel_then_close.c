// A thread is cancelled while it waits in recv or in send, and the connection is closed: the peer sees the end.
#include "dual.h"

static int connection;
static volatile int tid;

static void *receives(void *with) {
    tid = gettid();
    recv(connection, buf, 10, 0);
    return with;
}

static void *sends(void *with) {
    tid = gettid();
    for (;;)
        if (write(connection, buf, 65536) < 0) die(__LINE__, "write");
    return with;
}

static void cancel(void *(*run)(void *)) {
    tid = 0;
    pthread_t thread = start(run, NULL);
    while (tid == 0) sched_yield();
    wait_asleep(tid);
    ZERO(pthread_cancel(thread));
    say("cancelled: %d", finish(thread) == PTHREAD_CANCELED);
}

static void subject(int fd) {
    connection = fd;
    cancel(receives);
    cancel(sends);
    OK(close(fd));
    tell();
    await();
}

static void partner(int fd) {
    await();
    size_t total = 0;
    ssize_t got;
    while ((got = recv(fd, buf, sizeof buf, 0)) > 0) total += got;
    say("some: %d, then %zd", total > 0, got);
    tell();
}

SUBJECT_AND_PARTNER(subject, partner)
