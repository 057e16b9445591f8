// ppoll and pselect of a connection that is ready, beside one thing that is not, while a signal is pending that their mask lets through: what is ready is told.
#include "dual.h"
#include <sys/select.h>

static void handler(int signal) { (void)signal; }

static void subject(int fd) {
    int nothing[2];
    sigset_t blocked, before;
    OK(pipe(nothing));
    handle(SIGUSR1, handler, 0);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    OK(sigprocmask(SIG_BLOCK, &blocked, &before));
    settle(fd, 4);
    for (int i = 0; i < 3; i++) {
        struct pollfd both[2] = {{nothing[0], POLLIN, 0}, {fd, POLLIN, 0}};
        struct timespec none = {0, 0};
        OK(kill(getpid(), SIGUSR1));
        say("%d", ppoll(both, 2, NULL, &before));
        OK(kill(getpid(), SIGUSR1));
        say("%d", ppoll(both, 2, &none, &before));
        fd_set bits;
        FD_ZERO(&bits);
        FD_SET(nothing[0], &bits);
        FD_SET(fd, &bits);
        OK(kill(getpid(), SIGUSR1));
        say("%d", pselect((nothing[0] > fd ? nothing[0] : fd) + 1, &bits, NULL, NULL, NULL, &before));
    }
    hear(fd, 4);
    send_text(fd, "done");
}

static void partner(int fd) {
    send_text(fd, "data");
    hear(fd, 4);
}

SUBJECT_AND_PARTNER(subject, partner)
