// With SA_RESTART a program that loops over send never sees EINTR, and everything arrives.
#include "alarms.h"

enum { TOTAL = 24 << 20, SIGNALS = 5 };

// Nothing is taken before the last of them, so that they meet a send that waits for room, however fast the machine.
static void count_and_tell(int signal) {
    count_alarm(signal);
    if (alarms == SIGNALS) tell();
}

static void subject(int fd) {
    handle(SIGALRM, count_and_tell, SA_RESTART);
    alarms_every_ms(10);
    int interrupted = 0;
    for (size_t at = 0; at < TOTAL;) {
        size_t part = TOTAL - at < sizeof buf ? TOTAL - at : sizeof buf;
        fill(buf, part, at);
        for (size_t done = 0; done < part;) {
            ssize_t sent = send(fd, buf + done, part - done, 0);
            if (sent < 0) interrupted++;
            else done += sent;
        }
        at += part;
    }
    alarms_end();
    say("interrupted %d", interrupted);
    say_alarms("restarted");
    OK(shutdown(fd, SHUT_WR));
    hear(fd, 2);
}

static void partner(int fd) {
    await();
    recv_to_end(fd);
    send_text(fd, "ok");
}

SUBJECT_AND_PARTNER(subject, partner)
