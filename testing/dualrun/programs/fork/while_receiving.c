// fork while another thread waits in recv: the child may send, and exits.
#include "dual.h"

static volatile int tid;

static void *receives(void *with) {
    tid = gettid();
    hear(*(int *)with, 5);
    return NULL;
}

static void subject(int fd) {
    pthread_t thread = start(receives, &fd);
    while (tid == 0) sched_yield();
    wait_asleep(tid);
    pid_t child = OK(fork());
    if (child == 0) {
        send_text(fd, "child");
        _exit(0);
    }
    finish(thread);
    say_child("child", child);
    send_text(fd, "parent");
}

static void partner(int fd) {
    hear(fd, 5);
    send_text(fd, "hello");
    hear(fd, 6);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
