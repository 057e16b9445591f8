// A signal that every thread of the program blocks waits until one of them takes it.
#include "dual.h"

static int taken;

static void take(int signal) {
    (void)signal;
    taken++;
}

static void subject(int fd) {
    handle(SIGUSR1, take, 0);
    // Whatever a library begins when somebody listens, polls or receives has begun.
    say_poll("the word", fd, POLLIN, -1);
    hear(fd, 4);
    int listener = listening(AF_INET);
    sigset_t mine;
    sigemptyset(&mine);
    sigaddset(&mine, SIGUSR1);
    OK(sigprocmask(SIG_BLOCK, &mine, NULL));
    OK(kill(getpid(), SIGUSR1));
    struct timespec long_enough = {2, 0};
    say("waited for: %d", sigtimedwait(&mine, NULL, &long_enough) == SIGUSR1);
    say("handled: %d", taken);
    OK(close(listener));
    send_text(fd, "done");
}

static void partner(int fd) {
    send_text(fd, "word");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
