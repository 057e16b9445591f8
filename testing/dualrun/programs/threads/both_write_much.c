// Each end writes what two rings do not hold, and TCP does, before it reads, in one of two threads.
#include "much.h"

static int done[2];

static void *beside(void *nothing) {
    (void)nothing;
    char byte;
    OK(read(done[0], &byte, 1));
    return NULL;
}

static void end(int fd) {
    OK(pipe(done));
    pthread_t other = start(beside, NULL);
    write_much(fd, NULL);
    OK(write(done[1], "", 1));
    finish(other);
    read_much(fd);
}

SUBJECT_AND_PARTNER(end, end)
