// Many members of one set that each have rested, had a byte and rested again, and then something else than bytes comes.
#include "crowd.h"

enum { RESTS = 3, MEMBERS = 7 };

// What comes next, on whichever member; whatever it has is taken.
static void hear_one(int set, const char *what) {
    struct epoll_event event;
    OK(epoll_wait(set, &event, 1, -1));
    int fd = event.data.fd;
    ssize_t got = recv(fd, buf, sizeof buf, MSG_DONTWAIT);
    say("%s: %s of %d, recv %s", what, events(event.events), index_of(fd),
        got >= 0 ? (got > 0 ? "some" : "end") : strerrorname_np(errno));
    if (event.events & (EPOLLRDHUP | EPOLLHUP)) OK(control(set, EPOLL_CTL_DEL, fd, 0));
    tell();
}

static void hear_nothing(int set, const char *what) {
    struct epoll_event event;
    say("%s: %d", what, epoll_wait(set, &event, 1, 30));
}

static void subject(void) {
    int set = new_set();
    gather(set, EPOLLIN | EPOLLRDHUP);
    for (int i = 0; i < RESTS * MEMBERS; i++) hear_wave(set, 1, -1);
    hear_one(set, "shut down");
    hear_one(set, "closed");
    hear_one(set, "reset");

    int least = 4;
    OK(setsockopt(crowd[3], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least));
    tell();
    await();
    hear_nothing(set, "too little");
    tell();
    hear_one(set, "enough");

    OK(control(set, EPOLL_CTL_MOD, crowd[4], EPOLLIN | EPOLLOUT));
    hear_one(set, "room");
    OK(control(set, EPOLL_CTL_MOD, crowd[4], EPOLLIN));
    hear_one(set, "no more room");

    // Under another number, too, by which it stays a member.
    int other = OK(dup(crowd[5]));
    hear_one(set, "of two numbers");
    OK(close(other));
    hear_one(set, "of one number");

    OK(shutdown(crowd[6], SHUT_RD));
    hear_one(set, "deaf");
    hear_nothing(set, "at last");
    tell();
}

static void to_sleeper(int at, const char *text) {
    wait_asleep(waiter);
    send_text(crowd[at], text);
    await();
}

static void partner(void) {
    gather(-1, 0);
    for (int i = 0; i < RESTS * MEMBERS; i++) to_sleeper(i % MEMBERS, "w");
    wait_asleep(waiter);
    OK(shutdown(crowd[0], SHUT_WR));
    await();
    wait_asleep(waiter);
    OK(close(crowd[1]));
    await();
    wait_asleep(waiter);
    struct linger none = {1, 0};
    OK(setsockopt(crowd[2], SOL_SOCKET, SO_LINGER, &none, sizeof none));
    OK(close(crowd[2]));
    await();

    await();
    send_text(crowd[3], "ab");
    tell();
    await();
    send_text(crowd[3], "cd");
    await();

    await();
    to_sleeper(4, "w");
    to_sleeper(5, "w");
    to_sleeper(5, "w");
    await();
    await();
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
