// A handler closes what the program waits on (Onload's bug 20561): the call ends, with EINTR, or EBADF if it is restarted.
#include "alarms.h"

static int victim;

static void closes(int signal) {
    (void)signal;
    int saved = errno;
    close(victim);
    errno = saved;
}

static void subject(void) {
    for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
        handle(SIGALRM, closes, flags);
        victim = listening(AF_INET);
        alarms_every_ms(10);
        TRY(accept(victim, NULL, NULL));
        alarms_end();
        victim = connected();
        alarms_every_ms(10);
        TRY(recv(victim, buf, 10, 0));
        alarms_end();
        TRY(recv(victim, buf, 10, 0));
    }
}

static void partner(void) {
    for (int i = 0; i < 2; i++) recv_to_end(connected());
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
