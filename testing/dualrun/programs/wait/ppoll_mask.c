// A signal that is pending and blocked comes in when the mask of ppoll lets it.
#include "dual.h"

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
    handle(SIGUSR1, count, 0);
    OK(sigprocmask(SIG_BLOCK, &blocked, NULL));
    OK(raise(SIGUSR1));
    struct pollfd one = {.fd = fd, .events = POLLIN, .revents = -1};
    struct timespec zero = {0, 0}, bad = {0, 2000000000};
    TRY(ppoll(&one, 1, &zero, NULL));
    say("%d", signals);
    TRY(ppoll(&one, 1, NULL, &none));
    say("%d", signals);
    OK(raise(SIGUSR1));
    TRY(ppoll(&one, 1, &zero, &none));
    say("%d", signals);
    TRY(ppoll(&one, 1, &bad, NULL));
    meet();
    OK(raise(SIGUSR1));
    TRY(ppoll(&one, 1, NULL, &blocked)); // data, and the signal stays outside
    say("%s, %d", events(one.revents), signals);
    TRY(ppoll(&one, 1, NULL, &none)); // there is data, so no signal is let in
    say("%d", signals);
    hear(fd, 4);
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
