// A thread that waits in recv can be cancelled, its cleanup runs, and the connection goes on. poll, too.
#include "dual.h"

static int connection;
static volatile int tid;

static void cleanup(void *with) { say("cleanup of %s", (char *)with); }

static void *receives(void *with) {
    pthread_cleanup_push(cleanup, with);
    tid = gettid();
    char text[10];
    TRY(recv(connection, text, 10, 0));
    pthread_cleanup_pop(0);
    return with;
}

static void *polls(void *with) {
    pthread_cleanup_push(cleanup, with);
    tid = gettid();
    struct pollfd one = {.fd = connection, .events = POLLIN};
    TRY(poll(&one, 1, -1));
    pthread_cleanup_pop(0);
    return with;
}

static void *sends(void *with) {
    pthread_cleanup_push(cleanup, with);
    tid = gettid();
    for (;;)
        if (write(connection, buf, 65536) < 0) die(__LINE__, "write");
    pthread_cleanup_pop(0);
    return with;
}

static void cancel(void *(*run)(void *), char *name) {
    tid = 0;
    pthread_t thread = start(run, name);
    while (tid == 0) sched_yield();
    wait_asleep(tid);
    ZERO(pthread_cancel(thread));
    say("cancelled: %d", finish(thread) == PTHREAD_CANCELED);
}

static void subject(int fd) {
    connection = fd;
    cancel(receives, "recv");
    cancel(polls, "poll");
    cancel(receives, "recv again");
    tell();
    hear(fd, 4);
    send_text(fd, "answer");
    await();
    memset(buf, 'x', sizeof buf);
    cancel(sends, "write");
    tell();
    OK(shutdown(fd, SHUT_WR));
    hear(fd, 4);
}

static void partner(int fd) {
    await();
    send_text(fd, "data");
    hear(fd, 6);
    tell();
    await();
    size_t total = 0, wrong = 0;
    ssize_t got;
    while ((got = recv(fd, buf, sizeof buf, 0)) > 0)
        for (ssize_t i = 0; i < got; i++, total++) wrong += buf[i] != 'x';
    say("some: %d, wrong: %zu", total > 0, wrong);
    send_text(fd, "done");
}

SUBJECT_AND_PARTNER(subject, partner)
