// A thread that may be cancelled anywhere is while it sleeps in recv, poll and epoll_wait; the kind is what it was after each call, and the connection goes on.
#include "epoll.h"

static int connection, set;
static volatile int tid;

static void *run(void *which) {
    int old;
    struct epoll_event event;
    struct pollfd readable = {connection, POLLIN, 0};
    ZERO(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old));
    TRY(send(connection, "data", 4, 0));
    ZERO(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old));
    say("asynchronous: %d", old == PTHREAD_CANCEL_ASYNCHRONOUS);
    tid = gettid();
    if ((intptr_t)which == 0) recv(connection, buf, 4, 0);
    if ((intptr_t)which == 1) poll(&readable, 1, -1);
    if ((intptr_t)which == 2) epoll_wait(set, &event, 1, -1);
    say("came here");
    return NULL;
}

static void subject(int fd) {
    connection = fd;
    set = set_of(fd, EPOLLIN);
    for (intptr_t which = 0; which < 3; which++) {
        tid = 0;
        pthread_t thread = start(run, (void *)which);
        while (tid == 0) sched_yield();
        wait_asleep(tid);
        ZERO(pthread_cancel(thread));
        say("cancelled: %d", finish(thread) == PTHREAD_CANCELED);
    }
    TRY(send(fd, "done", 4, 0));
    hear(fd, 6);
}

static void partner(int fd) {
    for (int i = 0; i < 4; i++) hear(fd, 4);
    send_text(fd, "answer");
}

SUBJECT_AND_PARTNER(subject, partner)
