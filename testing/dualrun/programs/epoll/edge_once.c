// Edge-triggered: of what arrives while the set is being looked at there is one edge, as of what arrived before.
#include "epoll.h"

enum { TURNS = 10000 };

// Waits for an edge: how many more there are of the same bytes.
static int edges_too_many(int set) {
    struct epoll_event event;
    OK(epoll_wait(set, &event, 1, -1));
    return OK(epoll_wait(set, &event, 1, 0)) + OK(epoll_wait(set, &event, 1, 0));
}

static void subject(int fd) {
    int set = new_set(), too_many = 0;
    for (int i = 0; i < TURNS; i++) {
        OK(control(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET));
        send_text(fd, "w");
        too_many += edges_too_many(set);
        if (recv_all(fd, buf, 2) != 2) die(__LINE__, "two bytes");
        OK(control(set, EPOLL_CTL_DEL, fd, 0));
    }
    tell();
    say("edges too many: %d", too_many);
}

static void partner(int fd) {
    for (int i = 0; i < TURNS; i++) {
        if (recv_all(fd, buf, 1) != 1) die(__LINE__, "a byte");
        send_text(fd, "ab");
    }
    await();
}

SUBJECT_AND_PARTNER(subject, partner)
