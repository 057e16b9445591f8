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

// Once only, for a second one would kill; so not before the thread sleeps.
static void *alarm_sleeper(void *sleeper) {
    wait_asleep(*(int *)sleeper);
    OK(tgkill(getpid(), *(int *)sleeper, SIGALRM));
    return NULL;
}

static void subject(int fd) {
    int self = gettid();
    handle(SIGALRM, once, SA_RESETHAND);
    pthread_t other = start(alarm_sleeper, &self);
    TRY(recv(fd, buf, 10, 0));
    finish(other);
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
