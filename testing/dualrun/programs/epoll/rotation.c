// With room for one event, members that are always ready take turns.
#include "epoll.h"

enum { MEMBERS = 6 };

static void subject(void) {
    int fds[MEMBERS], ends[2], set = new_set();
    for (int i = 0; i < MEMBERS; i++) fds[i] = connected();
    meet();
    for (int i = 0; i < MEMBERS; i++) {
        settle(fds[i], 4);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        OK(epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &event));
    }
    OK(pipe(ends));
    OK(write(ends[1], "x", 1));
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = MEMBERS};
    OK(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event));
    int seen[MEMBERS + 1] = {0};
    for (int i = 0; i < 50 * (MEMBERS + 1); i++) {
        if (OK(epoll_wait(set, &event, 1, 0)) != 1) say("nothing");
        else seen[event.data.u32]++;
    }
    int starved = 0;
    for (int i = 0; i <= MEMBERS; i++) starved += seen[i] < 5;
    say("starved: %d", starved);
    tell();
}

static void partner(void) {
    int fds[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) fds[i] = connected();
    meet();
    for (int i = 0; i < MEMBERS; i++) send_text(fds[i], "data");
    await();
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
