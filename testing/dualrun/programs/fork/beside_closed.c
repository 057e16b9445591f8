// A fork while a thread still receives what another has closed: the child does not have that, and the peer hears the end though the child lives.
#include "dual.h"

static int number;
static volatile int reader;

static void *reads(void *with) {
    reader = gettid();
    TRY(recv(number, buf, 16, 0));
    return with;
}

static void subject(int fd) {
    number = fd;
    int hold[2];
    OK(pipe(hold));
    // For so long that the peer is asleep when it ends.
    struct timeval limit = {.tv_sec = 2};
    OK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    pthread_t thread = start(reads, NULL);
    while (reader == 0) sched_yield();
    wait_asleep(reader);
    OK(close(fd));
    pid_t child = OK(fork());
    if (child == 0) {
        // Until the other process closes the pipe.
        close(hold[1]);
        char none;
        _exit(read(hold[0], &none, 1) == 0 ? 0 : 1);
    }
    close(hold[0]);
    tell();
    finish(thread);
    // The peer has heard the end.
    await();
    close(hold[1]);
    say_child("child", child);
}

static void partner(int fd) {
    await();
    recv_to_end(fd);
    tell();
}

SUBJECT_AND_PARTNER(subject, partner)
