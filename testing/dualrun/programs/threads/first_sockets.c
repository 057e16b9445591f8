// Threads that make the first sockets of their process all at once, in many processes.
#include "dual.h"

enum { PROCESSES = 150, THREADS = 12 };

static pthread_barrier_t all;

static void *first(void *failed) {
    pthread_barrier_wait(&all);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) __atomic_store_n((int *)failed, errno, __ATOMIC_RELAXED);
    return NULL;
}

static int process(void) {
    pthread_t threads[THREADS];
    int failed = 0;
    pthread_barrier_init(&all, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(threads + i, NULL, first, &failed) != 0) return 255;
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return failed;
}

static void end(void) {
    int failures = 0, last = 0;
    for (int i = 0; i < PROCESSES; i++) {
        pid_t child = OK(fork());
        if (child == 0) _exit(process());
        int status;
        OK(waitpid(child, &status, 0));
        if (status == 0) continue;
        failures++;
        last = WEXITSTATUS(status);
    }
    say("processes that failed: %d, %s", failures, strerrorname_np(last));
}

SERVER_AND_CLIENT(end, end)
