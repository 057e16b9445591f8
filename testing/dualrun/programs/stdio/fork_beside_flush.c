// fork waits for another thread that writes all streams out, as the C library does, and does not keep the connection from it meanwhile.
#include "dual.h"

// More than both ends hold.
enum { TOTAL = 24 << 20 };

static volatile int forks, flushes;

static void *flush_all(void *with) {
    flushes = gettid();
    say("flushed: %d", fflush(NULL));
    return with;
}

static void *lets_go(void *with) {
    wait_asleep(forks);
    tell();
    return with;
}

static void subject(int fd) {
    char *text = malloc(TOTAL), *room = malloc(TOTAL + 1);
    FILE *stream = fdopen(fd, "w");
    setvbuf(stream, room, _IOFBF, TOTAL + 1);
    fill(text, TOTAL, 0);
    if (fwrite(text, 1, TOTAL, stream) != TOTAL) die(__LINE__, "fwrite");
    forks = gettid();
    pthread_t flusher = start(flush_all, NULL);
    while (flushes == 0) sched_yield();
    wait_asleep(flushes);
    pthread_t other = start(lets_go, NULL);
    pid_t child = OK(fork());
    if (child == 0) _exit(3);
    finish(other);
    finish(flusher);
    say_child("child", child);
    TRY(fclose(stream));
}

static void partner(int fd) {
    await();
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
