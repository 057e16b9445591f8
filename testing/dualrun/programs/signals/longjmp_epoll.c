// A handler leaves epoll_wait and epoll_ctl while they work; another thread goes on with the same set, and so does this one.
#include "jumps.h"
#include "epoll.h"

static int set;
static long wrong;

static void look_at_set(int timeout) {
    struct epoll_event event = {0};
    int count = epoll_wait(set, &event, 1, timeout);
    wrong += count != 1 || event.events != EPOLLIN || event.data.fd != connection;
}

static void *waits(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        OK(sem_wait(&turn));
        look_at_set(-1);
        OK(sem_post(&done));
    }
    return NULL;
}

static void look_now(void) { look_at_set(0); }

static void wait_for_it(void) { look_at_set(-1); }

static void change(void) { OK(control(set, EPOLL_CTL_MOD, connection, EPOLLIN)); }

// By the other thread, so that what a jump left is there again.
static void *adds(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        OK(sem_wait(&turn));
        control(set, EPOLL_CTL_DEL, connection, 0);
        OK(control(set, EPOLL_CTL_ADD, connection, EPOLLIN));
        look_at_set(-1);
        OK(sem_post(&done));
    }
    return NULL;
}

static void delete_and_add(void) {
    control(set, EPOLL_CTL_DEL, connection, 0);
    control(set, EPOLL_CTL_ADD, connection, EPOLLIN);
}

static void subject(int fd) {
    connection = fd;
    set = set_of(fd, EPOLLIN);
    settle(fd, 1);
    OK(sem_init(&turn, 0, 0));
    OK(sem_init(&done, 0, 0));
    handle(SIGALRM, leaves, SA_RESTART);
    rounds(look_now, waits);
    rounds(wait_for_it, waits);
    rounds(change, waits);
    rounds(delete_and_add, adds);
    say("jumps: %d, wrong: %ld", jumps, wrong);
    rounds(take_one, takes);
    say_set("what is left", set, 0);
    tell();
}

static void partner(int fd) {
    fill(buf, BYTES, 0);
    OK(send_all(fd, buf, BYTES));
    await();
}

SUBJECT_AND_PARTNER(subject, partner)
