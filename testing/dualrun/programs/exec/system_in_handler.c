// A handler starts shells that inherit the connection on which the program is sending, and some write to it: it is both's, and stays the program's.
#include "alarms.h"

enum { SHELLS = 30 };

static char script[64];
static long from_shells, failed;

static void shell(int signal) {
    (void)signal;
    int saved = errno;
    if (alarms++ < SHELLS) {
        int writes = alarms % 2;
        int status = system(writes ? script : "exit 3");
        if (status != (writes ? 0 : 3 << 8)) failed++;
        else from_shells += writes;
    }
    errno = saved;
}

static void subject(int fd) {
    snprintf(script, sizeof script, "printf H >&%d", fd);
    handle(SIGALRM, shell, SA_RESTART);
    alarms_every_ms(10);
    memset(buf, 'm', 4000);
    long sent = 0;
    for (int i = 0; alarms < SHELLS; i++)
        sent += OK(send(fd, buf, 1 + i % 4000, 0));
    alarms_every_ms(0);
    say("shells that failed: %ld", failed);
    tell_number(from_shells);
    tell_number(sent);
    OK(shutdown(fd, SHUT_WR));
    hear(fd, 2);
}

static void partner(int fd) {
    long shells = 0, own = 0, other = 0;
    ssize_t got;
    while ((got = recv(fd, buf, sizeof buf, 0)) > 0)
        for (ssize_t i = 0; i < got; i++) {
            shells += buf[i] == 'H';
            own += buf[i] == 'm';
            other += buf[i] != 'H' && buf[i] != 'm';
        }
    say_result("the last recv", got);
    say("all of the shells' bytes: %d", shells == await_number());
    say("all of the program's: %d, others: %ld", own == await_number(), other);
    send_text(fd, "ok");
}

SUBJECT_AND_PARTNER(subject, partner)
