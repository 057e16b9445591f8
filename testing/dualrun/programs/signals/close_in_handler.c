// A handler closes what the program waits on (Onload's bug 20561): the call ends, with EINTR, or EBADF if it is restarted.
#include "dual.h"

static int victim;

static void closes(int signal) {
    (void)signal;
    int saved = errno;
    close(victim);
    errno = saved;
}

static void subject(void) {
    for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
        handle(SIGALRM, closes, flags);
        victim = listening(AF_INET);
        tell_number(getpid());
        TRY(accept(victim, NULL, NULL));
        victim = connected();
        tell_number(getpid());
        TRY(recv(victim, buf, 10, 0));
        TRY(recv(victim, buf, 10, 0));
    }
}

// Once the subject waits: in a call that has not begun yet the number would be nothing's.
static void signal_sleeper(void) {
    pid_t pid = await_number();
    wait_asleep(pid);
    OK(kill(pid, SIGALRM));
}

static void partner(void) {
    for (int i = 0; i < 2; i++) {
        signal_sleeper();
        int fd = connected();
        signal_sleeper();
        recv_to_end(fd);
    }
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
