// Two threads wait in one level-triggered set. Who wakes first takes half of what came, and is busy until the other has the rest.
#include "epoll.h"

enum { ROUNDS = 10 };

static int set;
static volatile int took;

static void *serves(void *with) {
    struct epoll_event event;
    char half[4];
    *(volatile int *)with = gettid();
    intptr_t right = epoll_wait(set, &event, 1, -1) == 1 && recv(event.data.fd, half, 4, MSG_DONTWAIT) == 4;
    __atomic_add_fetch(&took, 1, __ATOMIC_SEQ_CST);
    while (took < 2) sched_yield();
    return (void *)right;
}

static void subject(int fd) {
    set = set_of(fd, EPOLLIN);
    int right = 0;
    for (int i = 0; i < ROUNDS; i++) {
        volatile int tids[2] = {0};
        pthread_t threads[2];
        took = 0;
        for (int j = 0; j < 2; j++) threads[j] = start(serves, (void *)&tids[j]);
        for (int j = 0; j < 2; j++) {
            while (tids[j] == 0) sched_yield();
            wait_asleep(tids[j]);
        }
        tell();
        for (int j = 0; j < 2; j++) right += finish(threads[j]) != NULL;
    }
    say("%d right", right);
}

static void partner(int fd) {
    for (int i = 0; i < ROUNDS; i++) {
        await();
        send_text(fd, "half" "half");
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
