// Four threads wait on one set with ONESHOT; each request is answered once, by one of them.
#include "epoll.h"

enum { CONNECTIONS = 4, TURNS = 100 };

static int set, right;
static volatile int done;

static void *serves(void *with) {
    char request[16];
    while (!done) {
        struct epoll_event event;
        int count = epoll_wait(set, &event, 1, 50);
        if (count <= 0) continue;
        int fd = event.data.fd;
        ssize_t got = recv(fd, request, 16, MSG_WAITALL);
        if (got == 16) send_all(fd, request, 16);
        if (got <= 0) __atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
        else OK(control(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT));
    }
    return with;
}

static void subject(void) {
    set = new_set();
    for (int i = 0; i < CONNECTIONS; i++) OK(control(set, EPOLL_CTL_ADD, connected(), EPOLLIN | EPOLLONESHOT));
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) threads[i] = start(serves, NULL);
    for (int i = 0; i < 4; i++) finish(threads[i]);
    say("done");
}

static void *asks(void *with) {
    int fd = *(int *)with;
    char request[16], answer[16];
    for (int i = 0; i < TURNS; i++) {
        fill(request, 16, i);
        send_all(fd, request, 16);
        if (recv_all(fd, answer, 16) == 16 && memcmp(request, answer, 16) == 0)
            __atomic_add_fetch(&right, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static void partner(void) {
    int fds[CONNECTIONS];
    pthread_t threads[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++) fds[i] = connected();
    for (int i = 0; i < CONNECTIONS; i++) threads[i] = start(asks, &fds[i]);
    for (int i = 0; i < CONNECTIONS; i++) finish(threads[i]);
    say("%d right", right);
    OK(shutdown(fds[0], SHUT_WR));
    recv_to_end(fds[0]);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
