// One connection always has something when one waits; one that has long been quiet is told after a pause nevertheless.
#include "epoll.h"

enum { BUSY, QUIET, CONNECTIONS, ROUNDS = 5, TURNS = 53 };

static int set;

// Which of the two are found when the busy one has something.
static int turn(int fds[CONNECTIONS]) {
    OK(send(fds[BUSY], "?", 1, 0));
    settle(fds[BUSY], 1);
    struct epoll_event events[CONNECTIONS];
    int count = OK(epoll_wait(set, events, CONNECTIONS, -1)), found = 0;
    for (int i = 0; i < count; i++) {
        int fd = events[i].data.fd;
        found |= fd == fds[BUSY] ? 1 << BUSY : 1 << QUIET;
        OK(recv(fd, buf, 1, 0));
    }
    return found;
}

static void subject(void) {
    int fds[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++) fds[i] = connected();
    set = set_of(fds[BUSY], EPOLLIN);
    OK(control(set, EPOLL_CTL_ADD, fds[QUIET], EPOLLIN));
    for (int round = 0; round < ROUNDS; round++) {
        tell_number(gettid());
        struct epoll_event event;
        OK(epoll_wait(set, &event, 1, -1));
        OK(recv(event.data.fd, buf, 1, 0));
        for (int i = 0; i < TURNS + round; i++)
            if (turn(fds) != 1 << BUSY) die(__LINE__, "the quiet one has nothing");
        tell();
        await();
        // Longer than a tick of the kernel's.
        usleep(30000);
        say("after a pause %d", turn(fds));
    }
    for (int i = 0; i < CONNECTIONS; i++) OK(close(fds[i]));
}

static void *echo(void *with) {
    int fd = *(int *)with;
    while (recv(fd, buf, 1, 0) == 1) send_all(fd, "!", 1);
    return NULL;
}

static void partner(void) {
    int fds[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++) fds[i] = connected();
    // Nor is there to be a wait for an acknowledgement.
    OK(setsockopt(fds[QUIET], IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
    pthread_t thread = start(echo, &fds[BUSY]);
    for (int round = 0; round < ROUNDS; round++) {
        wait_asleep(await_number());
        send_text(fds[BUSY], "!");
        await();
        send_text(fds[QUIET], "!");
        tell();
    }
    finish(thread);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
