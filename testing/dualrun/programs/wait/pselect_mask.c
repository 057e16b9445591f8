// pselect lets a pending signal in by its mask, and leaves its time alone.
#include "dual.h"
#include <sys/select.h>

static volatile sig_atomic_t signals;

static void count(int signal) {
    (void)signal;
    signals++;
}

static void subject(int fd) {
    sigset_t blocked, none;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    handle(SIGUSR1, count, SA_RESTART);
    OK(sigprocmask(SIG_BLOCK, &blocked, NULL));
    OK(raise(SIGUSR1));
    struct timespec little = {0, 5000000};
    fd_set in;
    FD_ZERO(&in);
    FD_SET(fd, &in);
    TRY(pselect(fd + 1, &in, NULL, NULL, &little, NULL));
    say("%d, time %ld", signals, little.tv_nsec);
    FD_SET(fd, &in);
    TRY(pselect(fd + 1, &in, NULL, NULL, NULL, &none));
    say("%d", signals);
    meet();
    FD_SET(fd, &in);
    TRY(pselect(fd + 1, &in, NULL, NULL, NULL, &none));
    say("%d", FD_ISSET(fd, &in) != 0);
    hear(fd, 4);
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
