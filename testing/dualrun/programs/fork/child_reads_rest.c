// The parent reads a part, the child the rest, large enough not to lie in any buffer.
#include "dual.h"

enum { TOTAL = 3000000, FIRST = 100001 };

static void subject(int fd) {
    tell();
    if (recv_all(fd, buf, FIRST) != FIRST || !as_filled(buf, FIRST, 0)) die(__LINE__, "first part");
    pid_t child = OK(fork());
    if (child == 0) {
        uint64_t at = FIRST;
        ssize_t got;
        while ((got = recv(fd, buf, 70000, 0)) > 0) {
            if (!as_filled(buf, got, at)) die(__LINE__, "rest");
            at += got;
        }
        say("child: to %lu", (unsigned long)at);
        _exit(0);
    }
    say_child("child", child);
    TRY(recv(fd, buf, 1, 0));
    send_text(fd, "done");
}

static void partner(int fd) {
    await();
    send_filled(fd, TOTAL);
    OK(shutdown(fd, SHUT_WR));
    hear(fd, 4);
}

SUBJECT_AND_PARTNER(subject, partner)
