// A peer that is killed wakes a reader in recv, poll and epoll_wait.
#include "epoll.h"

// Whether a killed process leaves an end or a reset depends on what it had not read, which is the kernel's business.
static void ended(ssize_t got) { say("%s", got == 0 || (got < 0 && errno == ECONNRESET) ? "ended" : "not ended"); }

static void subject(void) {
    int fds[3];
    for (int i = 0; i < 3; i++) fds[i] = connected();
    int set = set_of(fds[2], EPOLLIN);
    tell_number(getpid());
    ended(recv(fds[0], buf, 1, 0));
    struct pollfd one = {.fd = fds[1], .events = POLLIN};
    say("poll %ld", OK(poll(&one, 1, -1)));
    struct epoll_event event;
    say("epoll_wait %d", epoll_wait(set, &event, 1, -1));
    ended(recv(fds[1], buf, 1, 0));
    ended(recv(fds[2], buf, 1, 0));
}

static void partner(void) {
    for (int i = 0; i < 3; i++) connected();
    wait_asleep(await_number());
    say("kills itself");
    raise(SIGKILL);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
