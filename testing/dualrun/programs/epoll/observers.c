// Each three of those who can wait for bytes of one connection, none of whom takes any: all wake. So with two of one kind.
#include "epoll.h"

enum { POLL, SELECT, PEEK, WAIT, WAIT_OTHER, WAIT_OUTER, POLL_SET, KINDS };

static const char *const names[KINDS] = {"poll", "select", "peek", "wait", "wait on another set", "wait on an outer set", "poll on the set"};

static int connection, set, other, outer;
static volatile int tids[3];

struct observer {
    int kind, place;
};

static void *observes(void *with) {
    struct observer *me = with;
    struct epoll_event event;
    struct pollfd one = {.fd = me->kind == POLL ? connection : set, .events = POLLIN};
    fd_set fds;
    FD_ZERO(&fds);
    FD_SET(connection, &fds);
    char byte;
    tids[me->place] = gettid();
    long woken = 0;
    switch (me->kind) {
    case POLL:
    case POLL_SET: woken = poll(&one, 1, -1); break;
    case SELECT: woken = select(connection + 1, &fds, NULL, NULL, NULL); break;
    case PEEK: woken = recv(connection, &byte, 1, MSG_PEEK); break;
    case WAIT: woken = epoll_wait(set, &event, 1, -1); break;
    case WAIT_OTHER: woken = epoll_wait(other, &event, 1, -1); break;
    case WAIT_OUTER: woken = epoll_wait(outer, &event, 1, -1); break;
    }
    return (void *)woken;
}

static void all_wake(const int kinds[3]) {
    struct observer observers[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        observers[i] = (struct observer){kinds[i], i};
        tids[i] = 0;
        threads[i] = start(observes, &observers[i]);
    }
    for (int i = 0; i < 3; i++) {
        while (tids[i] == 0) sched_yield();
        wait_asleep(tids[i]);
    }
    tell_number(1);
    int woken = 0;
    for (int i = 0; i < 3; i++) woken += finish(threads[i]) == (void *)1;
    say("%s, %s, %s: %d", names[kinds[0]], names[kinds[1]], names[kinds[2]], woken);
    OK(recv(connection, buf, 1, 0));
}

static void subject(int fd) {
    connection = fd;
    set = set_of(fd, EPOLLIN);
    other = set_of(fd, EPOLLIN);
    outer = set_of(set, EPOLLIN);
    for (int i = 0; i < KINDS; i++)
        for (int j = i; j < KINDS; j++)
            for (int k = j + (i == j); k < KINDS; k++) {
                const int kinds[] = {i, j, k};
                all_wake(kinds);
            }
    tell_number(0);
}

static void partner(int fd) {
    while (await_number() == 1) send_text(fd, "x");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
