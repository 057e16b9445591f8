// epoll_pwait lets a pending signal in by its mask.
#include "epoll.h"

static volatile sig_atomic_t signals;

static void count(int signal) {
    (void)signal;
    signals++;
}

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN);
    struct epoll_event event;
    sigset_t blocked, none;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    handle(SIGUSR1, count, SA_RESTART);
    OK(sigprocmask(SIG_BLOCK, &blocked, NULL));
    OK(raise(SIGUSR1));
    TRY(epoll_pwait(set, &event, 1, 10, NULL));
    TRY(epoll_pwait(set, &event, 1, 10, &blocked));
    say("%d", signals);
    TRY(epoll_pwait(set, &event, 1, -1, &none));
    say("%d", signals);
    OK(raise(SIGUSR1));
    TRY(epoll_pwait(set, &event, 1, 0, &none));
    say("%d", signals);
    meet();
    settle(fd, 4);
    TRY(epoll_pwait(set, &event, 1, -1, &none));
    say("%s", events(event.events));
    hear(fd, 4);
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
