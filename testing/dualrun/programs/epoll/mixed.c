// A set of a connection, a pipe, an eventfd, a timerfd, a signalfd and a listener.
#include "epoll.h"
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

static void subject(int fd) {
    int ends[2], set = new_set();
    OK(pipe(ends));
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    OK(sigprocmask(SIG_BLOCK, &usr1, NULL));
    int event = OK(eventfd(0, 0)), timer = OK(timerfd_create(CLOCK_MONOTONIC, 0)), listener = listening(AF_INET);
    int signals = OK(signalfd(-1, &usr1, 0));
    int members[] = {fd, ends[0], event, timer, listener, signals};
    for (int i = 0; i < 6; i++) {
        struct epoll_event one = {.events = EPOLLIN, .data.u64 = 0x100000000u + i};
        OK(epoll_ctl(set, EPOLL_CTL_ADD, members[i], &one));
    }
    for (int round = 0; round < 6; round++) {
        if (round == 0) meet(), settle(fd, 4);
        if (round == 1) OK(write(ends[1], "x", 1));
        if (round == 2) OK(eventfd_write(event, 1));
        if (round == 3) OK(timerfd_settime(timer, 0, &(struct itimerspec){{0, 0}, {0, 1}}, NULL));
        if (round == 3) OK(read(timer, buf, 8)), OK(timerfd_settime(timer, 0, &(struct itimerspec){{0, 0}, {0, 1}}, NULL));
        if (round == 4) connect_port(AF_INET, port_of(listener));
        if (round == 5) OK(raise(SIGUSR1));
        struct pollfd ready = {.fd = members[round], .events = POLLIN};
        OK(poll(&ready, 1, -1));
        struct epoll_event got[10];
        int mask = 0, high = 1;
        // One call need not report all that is ready, but some calls must.
        for (int call = 0; call < 64; call++) {
            int count = OK(epoll_wait(set, got, 10, -1));
            for (int i = 0; i < count; i++) {
                mask |= (got[i].events == EPOLLIN) << got[i].data.u32;
                high = high && got[i].data.u64 >> 32 == 1;
            }
        }
        say("round %d: members %02x, high words as set: %d", round, mask, high);
    }
    hear(fd, 4);
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
