// A handler takes the data for which the program waits in recv, which waits on; its second signal lets it go.
#include "alarms.h"

static int connection;
static char taken[8];
static volatile sig_atomic_t has;

static void takes(int signal) {
    (void)signal;
    int saved = errno;
    if (has == 0) {
        ssize_t got = recv(connection, taken, 5, MSG_DONTWAIT);
        if (got > 0) has = got;
    }
    errno = saved;
}

static void subject(int fd) {
    connection = fd;
    handle(SIGURG, takes, SA_RESTART);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGURG);
    OK(sigprocmask(SIG_BLOCK, &blocked, NULL));
    meet();
    settle(fd, 10);
    OK(raise(SIGURG));
    OK(sigprocmask(SIG_UNBLOCK, &blocked, NULL)); // here the handler runs
    say("handler: %d %.5s", (int)has, taken);
    hear(fd, 5);
}

static void partner(int fd) {
    meet();
    send_text(fd, "0123456789");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
