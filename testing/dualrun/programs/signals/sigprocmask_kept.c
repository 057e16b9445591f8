// Calls leave the signal mask, errno on success, and the dispositions as they were.
#include "dual.h"

static void subject(int fd) {
    sigset_t before, after, set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    OK(sigprocmask(SIG_BLOCK, &set, NULL));
    OK(sigprocmask(SIG_BLOCK, NULL, &before));
    errno = EXDEV;
    ssize_t done = send(fd, "data", 4, 0);
    say("%ld %s", (long)done, strerrorname_np(errno));
    settle(fd, 4);
    errno = EXDEV;
    done = recv(fd, buf, 4, 0);
    say("%ld %s", (long)done, strerrorname_np(errno));
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    errno = EXDEV;
    done = poll(&one, 1, -1);
    say("%ld %s", (long)done, strerrorname_np(errno));
    OK(sigprocmask(SIG_BLOCK, NULL, &after));
    int changed = 0;
    for (int signal = 1; signal < 65; signal++) {
        changed += sigismember(&before, signal) != sigismember(&after, signal);
        struct sigaction action;
        if (sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_DFL) say("signal %d is handled", signal);
    }
    say("changed %d", changed);
    meet();
}

static void partner(int fd) {
    send_text(fd, "data");
    hear(fd, 4);
    meet();
}

SUBJECT_AND_PARTNER(subject, partner)
