// Calls that wait, are met by signals, and succeed: errno is as it was before. (nuttcp looks at it after its loop.)
#include "alarms.h"

enum { ROUNDS = 100, PIECE = 1 << 20 };

static int changed;

static void look(void) {
    changed += errno != 0;
    errno = 0;
}

static void subject(int fd) {
    handle(SIGALRM, count_alarm, SA_RESTART);
    alarms = 0;
    alarms_every_ms(1);
    errno = 0;
    for (int i = 0; i < ROUNDS || alarms < 100; i++) {
        send_text(fd, "again");
        look();
        // More than any buffer holds: both ends wait.
        for (long sent = 0; sent < PIECE;) {
            ssize_t n = send(fd, buf, PIECE - sent, 0);
            if (n < 0) die(__LINE__, "send");
            look();
            sent += n;
        }
        // A signal in its middle ends it with what there is.
        for (long got = 0; got < 6;) {
            ssize_t n = recv(fd, buf, 6 - got, MSG_WAITALL);
            if (n <= 0) die(__LINE__, "recv");
            look();
            got += n;
        }
    }
    alarms_every_ms(0);
    say("errno was changed: %d", changed);
    send_text(fd, "ended");
    hear(fd, 2);
}

static void partner(int fd) {
    long heard = 0;
    int at_once = 1;
    OK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once));
    while (recv(fd, buf, 5, MSG_WAITALL) == 5 && memcmp(buf, "again", 5) == 0) {
        recv_all(fd, buf, PIECE);
        send_all(fd, "got", 3);
        sched_yield();
        send_all(fd, "it!", 3);
        heard++;
    }
    say("rounds: %d", heard >= ROUNDS);
    send_text(fd, "ok");
}

SUBJECT_AND_PARTNER(subject, partner)
