// SA_RESETHAND and SA_NODEFER: what the handler is after the signal, and that a signal may come in its own handler.
#include "alarms.h"

static volatile int depth, deepest;

static void once(int signal) {
    (void)signal;
    alarms++;
}

static void nested(int signal) {
    depth++;
    if (depth > deepest) deepest = depth;
    if (depth < 3) raise(signal);
    depth--;
}

static void subject(int fd) {
    handle(SIGALRM, once, SA_RESETHAND);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 20000}}, NULL);
    TRY(recv(fd, buf, 10, 0));
    struct sigaction now;
    OK(sigaction(SIGALRM, NULL, &now));
    say("came %d, default again: %d", alarms, now.sa_handler == SIG_DFL);
    handle(SIGUSR1, nested, SA_NODEFER | SA_RESTART);
    OK(raise(SIGUSR1));
    say("deepest %d", deepest);
    tell();
    hear(fd, 4);
}

static void partner(int fd) {
    await();
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
