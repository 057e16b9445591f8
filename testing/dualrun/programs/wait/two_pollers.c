// Two threads poll one connection: data wakes both.
#include "dual.h"

static int connection;
static volatile int tids[2];

static void *polls(void *with) {
    tids[(intptr_t)with] = gettid();
    struct pollfd one = {.fd = connection, .events = POLLIN};
    return (void *)(intptr_t)(poll(&one, 1, -1) == 1 && one.revents == POLLIN);
}

static void subject(int fd) {
    connection = fd;
    pthread_t threads[2];
    for (intptr_t i = 0; i < 2; i++) threads[i] = start(polls, (void *)i);
    for (int i = 0; i < 2; i++) {
        while (tids[i] == 0) sched_yield();
        wait_asleep(tids[i]);
    }
    meet();
    for (int i = 0; i < 2; i++) say("%d", finish(threads[i]) != NULL);
    hear(fd, 4);
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
