// A process with a set of many members forks: it goes on, and a child waits for the same connections in a set of its own.
#include "crowd.h"

enum { WAVE = 1000, SLEEPS = 20 };

static void subject(void) {
    int set = new_set();
    gather(set, EPOLLIN);
    hear_wave(set, WAVE, -1);
    for (int i = 0; i < SLEEPS; i++) hear_wave(set, 1, -1);
    // What is noted before the fork is found after it.
    await();
    int hold[2];
    OK(pipe(hold));
    pid_t idle = OK(fork());
    if (idle == 0) {
        OK(close(hold[1]));
        _exit(read(hold[0], buf, 1) == 0 ? 0 : 1);
    }
    hear_wave(set, WAVE, -1);
    for (int i = 0; i < SLEEPS; i++) hear_wave(set, 1, -1);
    OK(close(hold[1]));
    say_child("idle", idle);
    pid_t child = OK(fork());
    if (child == 0) {
        int own = new_set();
        for (int i = 0; i < CROWD; i++) OK(control(own, EPOLL_CTL_ADD, crowd[i], EPOLLIN));
        tell_number(gettid());
        hear_wave(own, WAVE, -1);
        for (int i = 0; i < SLEEPS; i++) hear_wave(own, 1, -1);
        _exit(0);
    }
    say_child("child", child);
    tell_number(gettid());
    hear_wave(set, WAVE, -1);
    for (int i = 0; i < SLEEPS; i++) hear_wave(set, 1, -1);
}

static void partner(void) {
    gather(-1, 0);
    send_wave(1, WAVE, CROWD);
    await();
    send_to_sleeper(2, SLEEPS, CROWD);
    send_wave(3, WAVE, CROWD);
    tell();
    await();
    send_to_sleeper(4, SLEEPS, CROWD);
    for (int i = 0; i < 2; i++) {
        waiter = await_number();
        send_wave(5 + i, WAVE, CROWD);
        await();
        send_to_sleeper(10 + i, SLEEPS, CROWD);
    }
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
