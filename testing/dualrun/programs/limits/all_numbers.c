// A program has as many connections as its limit leaves room for, to within a few, and a number at the end of the range.
#include "dual.h"
#include <sys/resource.h>

enum { LIMIT = 64, COUNT = 50 };

static int fds[COUNT];

static void open_all(void) {
    for (int i = 0; i < COUNT; i++) fds[i] = connected();
}

static void subject(void) {
    struct rlimit limit;
    OK(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = LIMIT;
    OK(setrlimit(RLIMIT_NOFILE, &limit));
    open_all();
    say("%d", COUNT);
    int last = OK(fcntl(fds[0], F_DUPFD, LIMIT - 4));
    say("at the end: %d", last >= LIMIT - 4);
    send_text(last, "still");
    OK(close(last));
    for (int i = 0; i < COUNT; i++) hear(fds[i], 2);
    meet();
}

static void partner(void) {
    open_all();
    hear(fds[0], 5);
    for (int i = 0; i < COUNT; i++) send_text(fds[i], "ok");
    meet();
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
