// The sender is killed while it sends: the receiver gets a beginning of what was sent, in order, then the end or a reset.
#include "dual.h"

static void subject(int fd) {
    pid_t child = OK(fork());
    if (child == 0) {
        for (uint64_t at = 0;; at += 10000) {
            fill(buf, 10000, at);
            if (send(fd, buf, 10000, 0) < 0) _exit(1);
        }
    }
    OK(close(fd));
    await();
    OK(kill(child, SIGKILL));
    say_child("sender", child);
    tell();
}

static void partner(int fd) {
    uint64_t at = 0;
    ssize_t got;
    int told = 0;
    while ((got = recv(fd, buf, 30000, 0)) > 0) {
        if (!as_filled(buf, got, at)) die(__LINE__, "not as sent");
        at += got;
        if (!told && at > 500000) {
            told = 1;
            tell();
        }
    }
    say("then %s", got == 0 || errno == ECONNRESET ? "it ended" : strerrorname_np(errno));
    await();
}

SUBJECT_AND_PARTNER(subject, partner)
