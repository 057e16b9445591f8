// Out-of-band data: SIGURG, POLLPRI, the mark, and the byte itself, with ordinary data on both sides of it.
#include "dual.h"

static volatile sig_atomic_t urgent;

static void count(int signal) {
    (void)signal;
    urgent++;
}

static void subject(int fd) {
    int mark;
    handle(SIGURG, count, SA_RESTART);
    OK(fcntl(fd, F_SETOWN, getpid()));
    meet();
    while (urgent == 0) sched_yield();
    say_poll("urgent", fd, POLLPRI, -1);
    TRY(ioctl(fd, SIOCATMARK, &mark));
    say("at the mark: %d", mark);
    settle(fd, 6);
    TRY(recv(fd, buf, 100, 0)); // stops before the mark
    say("%.6s", buf);
    TRY(ioctl(fd, SIOCATMARK, &mark));
    say("at the mark: %d", mark);
    TRY(recv(fd, buf, 100, MSG_OOB));
    say("%c", buf[0]);
    TRY(recv(fd, buf, 100, MSG_OOB));
    hear(fd, 5);
    TRY(ioctl(fd, SIOCATMARK, &mark));
    say("at the mark: %d", mark);
    say("signals: %d", urgent);
    tell();
}

static void partner(int fd) {
    meet();
    send_text(fd, "before");
    TRY(send(fd, "!", 1, MSG_OOB));
    send_text(fd, "after");
    await();
}

SUBJECT_AND_PARTNER(subject, partner)
