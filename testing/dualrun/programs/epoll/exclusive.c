// EPOLLEXCLUSIVE: two sets and two threads; someone wakes, and nobody sleeps for ever. What it refuses.
#include "epoll.h"

static int sets[2];
static volatile int tids[2];

static void *waits(void *with) {
    intptr_t which = (intptr_t)with;
    tids[which] = gettid();
    struct epoll_event event = {0};
    int count = epoll_wait(sets[which], &event, 1, -1);
    return (void *)(intptr_t)(count == 1 && (event.events & EPOLLIN));
}

static void subject(int fd) {
    for (int i = 0; i < 2; i++) sets[i] = set_of(fd, EPOLLIN | EPOLLEXCLUSIVE);
    TRY(control(sets[0], EPOLL_CTL_MOD, fd, EPOLLIN));
    int other = new_set();
    TRY(control(other, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT));
    OK(control(other, EPOLL_CTL_ADD, fd, EPOLLIN));
    TRY(control(other, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLEXCLUSIVE));
    int outer = new_set();
    TRY(control(outer, EPOLL_CTL_ADD, other, EPOLLIN | EPOLLEXCLUSIVE));
    TRY(control(outer, EPOLL_CTL_ADD, other, EPOLLIN));
    OK(close(outer));
    pthread_t threads[2];
    for (intptr_t i = 0; i < 2; i++) {
        threads[i] = start(waits, (void *)i);
        while (tids[i] == 0) sched_yield();
        wait_asleep(tids[i]);
    }
    meet();
    say_set("an ordinary set", other, -1);
    tell(); // a second event wakes whoever the first did not
    for (int i = 0; i < 2; i++) say("%d", finish(threads[i]) != NULL);
    hear(fd, 8);
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    await();
    send_text(fd, "more");
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
