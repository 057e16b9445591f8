// A set of many members that is waited for in other ways as well: by poll, in another set, and by a second thread.
#include "crowd.h"

enum { WAVE = 1000, SLEEPS = 20 };

static int set;

static void *wait_too(void *unused) {
    struct epoll_event event;
    OK(epoll_wait(set, &event, 1, -1));
    return unused;
}

static void subject(void) {
    set = new_set();
    gather(set, EPOLLIN);
    hear_wave(set, WAVE, -1);
    for (int i = 0; i < SLEEPS; i++) hear_wave(set, 1, -1);
    // A second thread sleeps there while this one is elsewhere.
    pthread_t thread = start(wait_too, NULL);
    tell();
    finish(thread);
    hear_wave(set, 1, -1);
    hear_wave(set, WAVE, -1);
    say_poll("asleep in poll", set, POLLIN, -1);
    hear_wave(set, 1, -1);
    int outer = set_of(set, EPOLLIN);
    say_set("asleep in another set", outer, -1);
    hear_wave(set, 1, -1);
    hear_wave(set, WAVE, -1);
}

static void partner(void) {
    gather(-1, 0);
    send_wave(1, WAVE, CROWD);
    await();
    send_to_sleeper(2, SLEEPS, CROWD);
    await();
    send_wave(3, 1, CROWD);
    await();
    send_wave(4, WAVE, CROWD);
    await();
    for (int i = 0; i < 2; i++) {
        wait_asleep(waiter);
        send_wave(5 + i, 1, CROWD);
        await();
    }
    send_wave(7, WAVE, CROWD);
    await();
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
