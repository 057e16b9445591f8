// A handler sends on the connection on which the program is sending, without waiting: all bytes arrive, none is torn.
#include "alarms.h"

static int connection;
static long from_handler;

static void note(int signal) {
    (void)signal;
    int saved = errno;
    if (send(connection, "H", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1) from_handler++;
    char in;
    // Nothing comes; but the receiving side is entered, too.
    recv(connection, &in, 1, MSG_DONTWAIT);
    alarms++;
    errno = saved;
}

static void subject(int fd) {
    connection = fd;
    handle(SIGALRM, note, SA_RESTART);
    alarms_every_ms(2);
    memset(buf, 'm', 4000);
    for (int i = 0; i < 5000 || alarms < 10; i++) {
        ssize_t sent = send(fd, buf, 1 + i % 4000, 0);
        if (i >= 5000) sent = send(fd, buf, 1, 0);
        if (sent < 0) die(__LINE__, "send");
    }
    alarms_every_ms(0);
    say("signals came: %d", alarms >= 10);
    tell_number(from_handler);
    OK(shutdown(fd, SHUT_WR));
    hear(fd, 2);
}

static void partner(int fd) {
    long handler = 0, other = 0;
    ssize_t got;
    while ((got = recv(fd, buf, sizeof buf, 0)) > 0)
        for (ssize_t i = 0; i < got; i++) {
            handler += buf[i] == 'H';
            other += buf[i] != 'H' && buf[i] != 'm';
        }
    say("all of the handler's bytes: %d, others: %ld", handler == await_number(), other);
    send_text(fd, "ok");
}

SUBJECT_AND_PARTNER(subject, partner)
