// SIGCHLD comes while the program forks once more, and its handler is the first to use a pipe, and sends on the connection: self-pipes of servers that fork.
#include "dual.h"

enum { ROUNDS = 100 };

static int wakes, fd_of_handler;
static volatile sig_atomic_t sends;

static void wake(int signal) {
    (void)signal;
    int saved = errno;
    if (write(wakes, "w", 1) != 1) die(__LINE__, "pipe");
    if (sends) {
        sends = 0;
        if (send(fd_of_handler, "s", 1, 0) != 1) die(__LINE__, "send");
    }
    errno = saved;
}

// Ends at once; not 0 if the mask of signals is not its parent's.
static void brief(const sigset_t *mask) {
    if (OK(fork()) > 0) return;
    sigset_t now;
    OK(sigprocmask(SIG_BLOCK, NULL, &now));
    int changed = 0;
    for (int signal = 1; signal < 65; signal++) changed += sigismember(mask, signal) != sigismember(&now, signal);
    _exit(changed);
}

static void subject(int fd) {
    fd_of_handler = fd;
    struct sigaction action = {.sa_handler = wake, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    OK(sigaction(SIGCHLD, &action, NULL));
    sigset_t mask;
    OK(sigprocmask(SIG_BLOCK, NULL, &mask));
    int changed = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int pipes[2];
        OK(pipe(pipes));
        wakes = pipes[1];
        sends = 1;
        brief(&mask);
        brief(&mask);
        int status;
        while (wait(&status) > 0 || errno == EINTR) changed += status != 0;
        if (sends) die(__LINE__, "no signal");
        OK(read(pipes[0], buf, 2));
        OK(close(pipes[0]));
        OK(close(pipes[1]));
    }
    say("changed %d", changed);
    meet();
}

static void partner(int fd) {
    hear(fd, ROUNDS);
    meet();
}

SUBJECT_AND_PARTNER(subject, partner)
