// Shutdown by one thread ends the recv in which another waits.
#include "dual.h"

static int connection;
static volatile int reader;

static void *reads(void *with) {
    reader = gettid();
    TRY(recv(connection, buf, 10, 0));
    return with;
}

static void subject(int fd) {
    connection = fd;
    pthread_t thread = start(reads, NULL);
    while (reader == 0) sched_yield();
    wait_asleep(reader);
    OK(shutdown(fd, SHUT_RDWR));
    finish(thread);
}

static void partner(int fd) { recv_to_end(fd); }

SUBJECT_AND_PARTNER(subject, partner)
