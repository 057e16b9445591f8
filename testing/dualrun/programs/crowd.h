// What the programs about sets of many connections share: more than a set has before what comes is noted on a board.
#ifndef DUAL_CROWD_H
#define DUAL_CROWD_H

#include "epoll.h"

#ifndef CROWD
#define CROWD 150
#endif
enum { TURNS = 40 };

static int crowd[CROWD];
// Of the subject, as the partner knows it.
static int waiter;

// All are members before the first is warm: what peers lend each other they lend when they meet.
SHARED void gather(int set, unsigned wanted) {
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = connected_by(AF_INET);
        if (is_subject) OK(control(set, EPOLL_CTL_ADD, crowd[i], wanted));
    }
    // Turns enough, and no bulk, of which there would be much.
    for (int turn = 0; is_warm && turn < TURNS * CROWD; turn++) {
        int fd = crowd[turn / TURNS];
        if (is_client) send_text(fd, "are you warm?");
        if (recv_all(fd, buf, 13) != 13) die(__LINE__, "gather");
        if (!is_client) send_text(fd, "I am, I think");
    }
    if (is_subject) tell_number(gettid());
    else waiter = await_number();
}

SHARED int index_of(int fd) {
    for (int i = 0; i < CROWD; i++)
        if (crowd[i] == fd) return i;
    return -1;
}

// The same numbers at each run.
SHARED unsigned next_random(unsigned *state) { return (*state = *state * 1664525 + 1013904223) >> 16; }

// One byte on each of `count` members, the first `among` of them.
SHARED void send_wave(unsigned seed, int count, int among) {
    for (int i = 0; i < count; i++) send_text(crowd[next_random(&seed) % among], "w");
}

// Each time the subject sleeps, one byte.
SHARED void send_to_sleeper(unsigned seed, int count, int among) {
    for (int i = 0; i < count; i++) {
        wait_asleep(waiter);
        send_wave(seed + i, 1, among);
        await();
    }
}

// What one event brought, and from whom.
struct tally {
    int bytes;
    unsigned long sum;
};

SHARED void take(struct tally *tally, int fd) {
    ssize_t got = recv(fd, buf, sizeof buf, MSG_DONTWAIT);
    if (got <= 0) return;
    tally->bytes += got;
    tally->sum += got * (index_of(fd) + 1);
}

// Hears so many bytes, from whomever.
SHARED void hear_wave(int set, int count, int timeout) {
    struct tally tally = {0};
    while (tally.bytes < count) {
        struct epoll_event events[32];
        int ready = epoll_wait(set, events, 32, timeout);
        if (ready < 0 && errno != EINTR) die(__LINE__, "epoll_wait");
        for (int i = 0; i < ready; i++) take(&tally, events[i].data.fd);
    }
    say("%d bytes, %lu", tally.bytes, tally.sum);
    tell();
}

#endif
