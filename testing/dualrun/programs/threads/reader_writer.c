// One thread reads and another writes, at both ends at once.
#include "dual.h"

enum { TOTAL = 6 << 20 };

static void *writes(void *with) {
    send_filled(*(int *)with, TOTAL);
    OK(shutdown(*(int *)with, SHUT_WR));
    return NULL;
}

static void end(int fd) {
    pthread_t thread = start(writes, &fd);
    recv_to_end(fd);
    finish(thread);
}

SUBJECT_AND_PARTNER(end, end)
