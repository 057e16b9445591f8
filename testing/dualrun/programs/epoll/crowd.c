// Many members of one set, used now and then: while it is waited for, while its thread is busy elsewhere, and while it sleeps.
#include "crowd.h"

enum { WAVE = 2000, SLEEPS = 40, ROUNDS = 300, GROUP = 16 };

static void subject(void) {
    int set = new_set();
    gather(set, EPOLLIN);
    for (int i = 0; i < 3; i++) hear_wave(set, WAVE, -1);
    for (int i = 0; i < SLEEPS; i++) hear_wave(set, 1, -1);
    // Without waiting, and for a little.
    hear_wave(set, WAVE, 0);
    hear_wave(set, WAVE, 1);
    // What came meanwhile is there.
    await();
    hear_wave(set, WAVE, -1);
    for (int left = ROUNDS * GROUP; left > 0;) {
        struct epoll_event events[8];
        int ready = OK(epoll_wait(set, events, 8, -1));
        for (int i = 0; i < ready; i++) {
            ssize_t got = recv(events[i].data.fd, buf, sizeof buf, MSG_DONTWAIT);
            if (got > 0 && send_all(events[i].data.fd, buf, got) == got) left -= got;
        }
    }
    struct epoll_event event;
    TRY(epoll_wait(set, &event, 1, 0));
    TRY(epoll_wait(set, &event, 1, 20));
    tell();
}

static void partner(void) {
    gather(-1, 0);
    for (int i = 0; i < 3; i++) {
        send_wave(i, WAVE, CROWD);
        await();
    }
    send_to_sleeper(100, SLEEPS, CROWD);
    for (int i = 0; i < 2; i++) {
        send_wave(10 + i, WAVE, CROWD);
        await();
    }
    send_wave(20, WAVE, CROWD);
    tell();
    await();
    unsigned seed = 30;
    for (int i = 0; i < ROUNDS; i++) {
        int at = next_random(&seed) % (CROWD - GROUP);
        for (int j = 0; j < GROUP; j++) send_text(crowd[at + j], "e");
        for (int j = 0; j < GROUP; j++)
            if (recv_all(crowd[at + j], buf, 1) != 1) die(__LINE__, "echo");
    }
    await();
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
