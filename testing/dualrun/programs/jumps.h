// Jumps out of calls that work, while another thread acts on the same connection.
#ifndef DUAL_JUMPS_H
#define DUAL_JUMPS_H

#include "alarms.h"
#include <semaphore.h>
#include <setjmp.h>
#include <ucontext.h>

enum { ROUNDS = 300, RECORD = 64, A_ROUND = 300, BYTES = 1 << 20 };

struct record {
    uint32_t who, number;
    uint32_t rest[RECORD / 4 - 2];
};

static sigjmp_buf back;
static ucontext_t context;
// By setcontext, of which nobody is told: then the thread makes another such call before the other thread does.
static volatile int by_context;
static volatile sig_atomic_t armed, jumps;
static sem_t turn, done;
static int connection;
static volatile uint32_t number;

static void leaves(int signal) {
    (void)signal;
    if (!armed) return;
    armed = 0;
    jumps++;
    if (by_context) OK(setcontext(&context));
    switch (jumps % 3) {
    case 0: siglongjmp(back, 1);
    case 1: longjmp(back, 1);
    default: _longjmp(back, 1);
    }
}

static void send_record(uint32_t who, uint32_t number) {
    struct record record = {who, number, {0}};
    for (size_t i = 0; i < sizeof record.rest / 4; i++) record.rest[i] = number ^ i;
    if (send(connection, &record, sizeof record, 0) < 0) die(__LINE__, "send");
}

static void *sends(void *unused) {
    (void)unused;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        OK(sem_wait(&turn));
        send_record(2, round);
        OK(sem_post(&done));
    }
    return NULL;
}

static void *receives(void *unused) {
    (void)unused;
    long in_place = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        OK(sem_wait(&turn));
        unsigned char here[RECORD];
        in_place += recv(connection, here, RECORD, MSG_WAITALL) == RECORD && as_filled(here, RECORD, (uint64_t)round * RECORD);
        OK(sem_post(&done));
    }
    say("the other thread's bytes in their place: %ld", in_place);
    return NULL;
}

static void *takes(void *unused) {
    (void)unused;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        OK(sem_wait(&turn));
        char one;
        if (recv(connection, &one, 1, 0) != 1) die(__LINE__, "recv");
        OK(sem_post(&done));
    }
    return NULL;
}

static void send_one(void) { send_record(1, number++); }

static void look(void) {
    char here[RECORD];
    if (recv(connection, here, RECORD, MSG_PEEK) < 1) die(__LINE__, "recv");
}

static void take_one(void) {
    char here;
    if (recv(connection, &here, 1, 0) != 1) die(__LINE__, "recv");
}

// This thread is jumped out of what it does again and again, the other acts in between.
static void rounds(void (*act)(void), void *(*other)(void *)) {
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    OK(sigprocmask(SIG_BLOCK, &alarm, NULL));
    pthread_t thread = start(other, NULL);
    OK(sigprocmask(SIG_UNBLOCK, &alarm, NULL));
    for (volatile int round = 0; round < ROUNDS; round++) {
        volatile int jumped = 0;
        if (by_context) {
            OK(getcontext(&context));
        } else {
            jumped = sigsetjmp(back, 1);
        }
        if (!jumped) {
            jumped = 1;
            armed = 1;
            struct itimerval soon = {{0, 0}, {0, 10 + round % 40}};
            OK(setitimer(ITIMER_REAL, &soon, NULL));
            // No more than the kernel takes at once: else it would have taken half a record of a send that is left asleep.
            for (volatile int acts = 0;;)
                if (acts < A_ROUND) {
                    acts++;
                    act();
                }
        }
        if (by_context) act();
        OK(sem_post(&turn));
        OK(sem_wait(&done));
        if (act == send_one) await();
    }
    finish(thread);
}

SHARED void jump_out_of_calls(int fd) {
    connection = fd;
    // Or the end of each round could wait for a timer of what gathers small messages.
    OK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
    OK(sem_init(&turn, 0, 0));
    OK(sem_init(&done, 0, 0));
    handle(SIGALRM, leaves, SA_RESTART);
    rounds(send_one, sends);
    OK(shutdown(fd, SHUT_WR));
    rounds(look, receives);
    rounds(take_one, takes);
    say("jumps: %d", jumps);
    tell();
}

SHARED void partner_of_jumps(int fd) {
    long torn = 0, order = 0, others = 0;
    uint32_t next = 0;
    struct record record;
    ssize_t got;
    while ((got = recv(fd, &record, RECORD, MSG_WAITALL)) == RECORD) {
        for (size_t i = 0; i < sizeof record.rest / 4; i++) torn += record.rest[i] != (record.number ^ i);
        if (record.who == 1) {
            order += record.number < next;
            next = record.number + 1;
        } else {
            order += record.who != 2 || record.number != others++;
            tell();
        }
    }
    say("the end: %zd; torn: %ld, out of order: %ld, the other thread's: %ld", got, torn, order, others);
    fill(buf, BYTES, 0);
    OK(send_all(fd, buf, BYTES));
    await();
}

#endif
