// The receiver is killed in the middle: the sender finds out, and does not hang.
#include "dual.h"

static void subject(int fd) {
    signal(SIGPIPE, SIG_IGN);
    fill(buf, sizeof buf, 0);
    ssize_t sent, total = 0;
    while ((sent = send(fd, buf, 20000, 0)) > 0) {
        total += sent;
        if (total == 1000000) tell();
    }
    say("%s", errno == EPIPE || errno == ECONNRESET ? "found out" : strerrorname_np(errno));
    ssize_t got = recv(fd, buf, 1, 0);
    say("%s", got <= 0 ? "nothing to read" : "something to read");
}

static void partner(int fd) {
    pid_t child = OK(fork());
    if (child == 0) {
        for (;;)
            if (recv(fd, buf, 5000, 0) <= 0) _exit(1);
    }
    OK(close(fd));
    await();
    OK(kill(child, SIGKILL));
    say_child("receiver", child);
}

SUBJECT_AND_PARTNER(subject, partner)
