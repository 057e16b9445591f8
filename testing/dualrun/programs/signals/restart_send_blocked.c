// As restart_send, where the program has a handler without SA_RESTART, too, for a signal that is blocked: that one interrupts nothing.
#include "alarms.h"

enum { SIGNALS = 5 };

// Nothing is taken before the last of them.
static void count_and_tell(int signal) {
    count_alarm(signal);
    if (alarms == SIGNALS) tell();
}

static void subject(int fd) {
    sigset_t other;
    OK(sigemptyset(&other));
    OK(sigaddset(&other, SIGUSR1));
    OK(sigprocmask(SIG_BLOCK, &other, NULL));
    handle(SIGUSR1, count_alarm, 0);
    handle(SIGALRM, count_and_tell, SA_RESTART);
    fill(buf, sizeof buf, 0);
    alarms_every_ms(10);
    int interrupted = 0;
    while (alarms < SIGNALS) interrupted += send(fd, buf, sizeof buf, 0) < 0;
    alarms_end();
    say("interrupted: %d", interrupted > 0);
    say_alarms("restarted");
    OK(shutdown(fd, SHUT_WR));
    hear(fd, 2);
}

static void partner(int fd) {
    await();
    size_t total = 0;
    ssize_t got;
    while ((got = recv(fd, buf, sizeof buf, 0)) > 0) total += got;
    say("some: %d, then %zd", total > 0, got);
    send_text(fd, "ok");
}

SUBJECT_AND_PARTNER(subject, partner)
