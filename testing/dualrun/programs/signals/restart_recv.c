// With SA_RESTART a recv waits on through signals; with a timeout it is ended all the same (signal(7)).
#include "alarms.h"

static void *tells_later(void *with) {
    while (alarms < 5) sched_yield();
    tell();
    return with;
}

static void subject(int fd) {
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    OK(sigprocmask(SIG_BLOCK, &alarm, NULL));
    pthread_t thread = start(tells_later, NULL); // which no signal disturbs
    OK(sigprocmask(SIG_UNBLOCK, &alarm, NULL));
    alarms_begin(SA_RESTART);
    TRY(recv(fd, buf, 10, 0));
    alarms_end();
    finish(thread);
    say_alarms("restarted");
    struct timeval long_time = {100, 0};
    OK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof long_time));
    alarms_begin(SA_RESTART);
    TRY(recv(fd, buf, 10, 0));
    TRY(read(fd, buf, 10));
    alarms_end();
}

static void partner(int fd) {
    await();
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
