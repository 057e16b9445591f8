// One poll over a connection, a pipe, an eventfd, a timerfd, a file, a listener, a negative and a bad number.
#include "dual.h"
#include <sys/eventfd.h>
#include <sys/timerfd.h>

static void subject(int fd) {
    enum { CONNECTION, PIPE, EVENT, TIMER, FILE_, LISTENER, NEGATIVE, BAD, COUNT };
    static const char *const names[] = {"connection", "pipe", "eventfd", "timerfd", "file", "listener", "negative", "bad"};
    int ends[2];
    OK(pipe(ends));
    struct pollfd set[COUNT] = {
        {fd, POLLIN, -1},
        {ends[0], POLLIN, -1},
        {OK(eventfd(0, 0)), POLLIN | POLLOUT, -1},
        {OK(timerfd_create(CLOCK_MONOTONIC, 0)), POLLIN, -1},
        {OK(open("/proc/self/exe", O_RDONLY)), POLLIN, -1},
        {listening(AF_INET), POLLIN, -1},
        {-5, POLLIN, -1},
        {800, POLLIN, -1},
    };
    for (int round = 0; round < 6; round++) {
        if (round == 1) meet(), settle(fd, 4);
        if (round == 2) OK(write(ends[1], "x", 1));
        if (round == 3) {
            struct itimerspec soon = {{0, 0}, {0, 1}};
            OK(timerfd_settime(set[TIMER].fd, 0, &soon, NULL));
            OK(poll(&set[TIMER], 1, -1));
        }
        if (round == 4) hear(fd, 4);
        if (round == 5) connect_port(AF_INET, port_of(set[LISTENER].fd)), OK(poll(&set[LISTENER], 1, -1));
        say("round %d: %d", round, poll(set, COUNT, round == 0 ? 0 : -1));
        for (int i = 0; i < COUNT; i++) say("  %s %s", names[i], events((unsigned short)set[i].revents));
    }
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
