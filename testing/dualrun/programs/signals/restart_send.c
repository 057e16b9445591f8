// With SA_RESTART a program that loops over send never sees EINTR, and everything arrives.
#include "alarms.h"

enum { TOTAL = 24 << 20 };

static void subject(int fd) {
    alarms_begin(SA_RESTART);
    int interrupted = 0, first = 1;
    for (size_t at = 0; at < TOTAL;) {
        size_t part = TOTAL - at < sizeof buf ? TOTAL - at : sizeof buf;
        fill(buf, part, at);
        for (size_t done = 0; done < part;) {
            ssize_t sent = send(fd, buf + done, part - done, 0);
            if (sent < 0) interrupted++;
            else done += sent;
        }
        at += part;
        if (at >= TOTAL / 2 && first) {
            first = 0;
            tell_number(at);
        }
    }
    alarms_end();
    say("interrupted %d", interrupted);
    say_alarms("restarted");
    OK(shutdown(fd, SHUT_WR));
    hear(fd, 2);
}

static void partner(int fd) {
    recv_to_end(fd);
    await();
    send_text(fd, "ok");
}

SUBJECT_AND_PARTNER(subject, partner)
