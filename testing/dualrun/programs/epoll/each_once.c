// One wait tells of each member once, whatever others leave the set's attention meanwhile.
#include "epoll.h"

enum { MEMBERS = 6, ROUNDS = 60 };

static void subject(void) {
    int fds[MEMBERS], set = new_set();
    for (int i = 0; i < MEMBERS; i++) fds[i] = connected();
    meet();
    for (int i = 0; i < MEMBERS; i++) {
        settle(fds[i], 4);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        OK(epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &event));
    }
    struct epoll_event found[MEMBERS + 1];
    int twice = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct epoll_event once = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = i % MEMBERS};
        OK(epoll_ctl(set, EPOLL_CTL_MOD, fds[once.data.u32], &once));
        // The next wait begins somewhere in the middle, and the one-shot may have been told.
        OK(epoll_wait(set, found, 1 + i % 4, 0));
        for (int again = 0; again < 2; again++) {
            int seen[MEMBERS] = {0}, count = OK(epoll_wait(set, found, MEMBERS + 1, 0));
            for (int at = 0; at < count; at++) twice += seen[found[at].data.u32]++ > 0;
        }
        struct epoll_event always = {.events = EPOLLIN, .data.u32 = once.data.u32};
        OK(epoll_ctl(set, EPOLL_CTL_MOD, fds[once.data.u32], &always));
    }
    say("told twice: %d", twice);
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
