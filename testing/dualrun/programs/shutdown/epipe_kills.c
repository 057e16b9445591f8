// Without a handler SIGPIPE ends the process.
#include "dual.h"

static void subject(int fd) {
    signal(SIGPIPE, SIG_DFL);
    settle_end(fd);
    say("writing until it kills");
    for (;;) {
        if (send(fd, "x", 1, 0) < 0 && errno != ECONNRESET) die(__LINE__, "send");
    }
}

static void partner(int fd) { TRY(close(fd)); }

SUBJECT_AND_PARTNER(subject, partner)
