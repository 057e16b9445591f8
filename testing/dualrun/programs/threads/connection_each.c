// Threads with a connection each, small turns.
#include "dual.h"

enum { THREADS = 6, TURNS = 300 };

static void *turns(void *with) {
    int fd = *(int *)with;
    char out[40], in[40];
    intptr_t right = 0;
    for (int i = 0; i < TURNS; i++) {
        fill(out, 40, i);
        if (is_subject) send_all(fd, out, 40);
        right += recv_all(fd, in, 40) == 40 && memcmp(in, out, 40) == 0;
        if (!is_subject) send_all(fd, in, 40);
    }
    return (void *)right;
}

static void end(void) {
    int fds[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) fds[i] = connected();
    for (int i = 0; i < THREADS; i++) threads[i] = start(turns, &fds[i]);
    for (int i = 0; i < THREADS; i++) say("%d", (int)(intptr_t)finish(threads[i]));
}

SUBJECT_AND_PARTNER_UNCONNECTED(end, end)
