// A peer that is killed wakes a reader in recv, poll and epoll_wait.
#include "epoll.h"

static void subject(void) {
    int fds[3];
    for (int i = 0; i < 3; i++) fds[i] = connected();
    int set = set_of(fds[2], EPOLLIN);
    tell_number(getpid());
    TRY(recv(fds[0], buf, 1, 0));
    say_poll("killed", fds[1], POLLIN, -1);
    say_set("killed", set, -1);
    TRY(recv(fds[1], buf, 1, 0));
    TRY(recv(fds[2], buf, 1, 0));
}

static void partner(void) {
    for (int i = 0; i < 3; i++) connected();
    wait_asleep(await_number());
    say("kills itself");
    raise(SIGKILL);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
