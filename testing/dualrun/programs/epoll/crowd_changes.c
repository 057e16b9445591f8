// Many members of one set of which some are told of changes only, some once, and some are removed and added, or closed.
#include "crowd.h"

enum { WAVE = 3000, SLEEPS = 30, STAY = CROWD - 40 };

static unsigned wanted_of(int i) { return EPOLLIN | (i % 3 == 1 ? EPOLLET : 0) | (i % 3 == 2 ? EPOLLONESHOT : 0); }

static void hear_and_change(int set, int count) {
    struct tally tally = {0};
    int turn = 0;
    while (tally.bytes < count) {
        struct epoll_event events[32];
        int ready = OK(epoll_wait(set, events, 32, -1));
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            take(&tally, fd);
            if (turn++ % 7 == 0) {
                OK(control(set, EPOLL_CTL_DEL, fd, 0));
                OK(control(set, EPOLL_CTL_ADD, fd, wanted_of(index_of(fd))));
            } else if (index_of(fd) % 3 == 2) {
                OK(control(set, EPOLL_CTL_MOD, fd, wanted_of(index_of(fd))));
            }
        }
    }
    say("%d bytes, %lu", tally.bytes, tally.sum);
    tell();
}

static void subject(void) {
    int set = new_set();
    gather(set, EPOLLIN);
    for (int i = 0; i < CROWD; i++) OK(control(set, EPOLL_CTL_MOD, crowd[i], wanted_of(i)));
    hear_and_change(set, WAVE);
    for (int i = 0; i < SLEEPS; i++) hear_and_change(set, 1);
    // Some leave the set and are read all the same, and some are closed.
    for (int i = STAY; i < CROWD - 20; i++) OK(control(set, EPOLL_CTL_DEL, crowd[i], 0));
    for (int i = CROWD - 20; i < CROWD; i++) OK(close(crowd[i]));
    tell();
    hear_and_change(set, WAVE);
    for (int i = STAY; i < CROWD - 20; i++)
        if (recv_all(crowd[i], buf, 4) != 4) die(__LINE__, "of one that has left");
    // In a second set, too.
    int other = new_set();
    for (int i = 0; i < 10; i++) OK(control(other, EPOLL_CTL_ADD, crowd[i], EPOLLIN));
    tell();
    hear_wave(other, 1, -1);
    hear_wave(other, 1, -1);
    hear_and_change(set, 100);
    // The first is closed: they are in one set again.
    OK(close(set));
    for (int i = 10; i < STAY; i++) OK(control(other, EPOLL_CTL_ADD, crowd[i], EPOLLIN));
    tell();
    hear_wave(other, WAVE, -1);
    for (int i = 0; i < SLEEPS; i++) hear_wave(other, 1, -1);
}

static void partner(void) {
    gather(-1, 0);
    send_wave(1, WAVE, CROWD);
    await();
    send_to_sleeper(2, SLEEPS, CROWD);
    await();
    for (int i = STAY; i < CROWD - 20; i++) send_text(crowd[i], "left");
    send_wave(3, WAVE, STAY);
    await();
    await();
    wait_asleep(waiter);
    send_text(crowd[3], "1");
    await();
    send_text(crowd[4], "2");
    await();
    send_wave(4, 100, STAY - 20);
    await();
    await();
    send_wave(5, WAVE, STAY);
    await();
    send_to_sleeper(6, SLEEPS, STAY);
    int ends = 0;
    for (int i = CROWD - 20; i < CROWD; i++) ends += recv(crowd[i], buf, 1, 0) == 0;
    say("%d have ended", ends);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
