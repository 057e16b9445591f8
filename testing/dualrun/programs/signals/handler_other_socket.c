// A handler sends and receives on one connection while the program does on another.
#include "alarms.h"

static int in_handler, turns, wrong;
static volatile int over;

// The next alarm: after the handler, however long that takes, the program has this time to itself.
static void alarm_in_2_ms(void) {
    struct itimerval once = {.it_value.tv_usec = 2000};
    OK(setitimer(ITIMER_REAL, &once, NULL));
}

static void exchange(int signal) {
    (void)signal;
    int saved = errno;
    char answer[8];
    if (send(in_handler, "tick....", 8, MSG_NOSIGNAL) != 8) wrong++;
    for (ssize_t got, have = 0; have < 8; have += got) {
        got = recv(in_handler, answer + have, 8 - have, 0);
        if (got <= 0) {
            wrong++;
            break;
        }
    }
    if (memcmp(answer, "tick....", 8) != 0) wrong++;
    alarms++;
    if (!over) alarm_in_2_ms();
    errno = saved;
}

static void subject(void) {
    int fds[2];
    connected_twice(fds);
    in_handler = fds[1];
    handle(SIGALRM, exchange, SA_RESTART);
    alarm_in_2_ms();
    char out[100], in[100];
    for (int i = 0; i < 3000 || alarms < 10; i++) {
        fill(out, 100, i);
        send_all(fds[0], out, 100);
        if (recv_all(fds[0], in, 100) == 100 && memcmp(in, out, 100) == 0) turns++;
    }
    over = 1;
    alarms_end();
    say("signals came: %d, wrong: %d, turns enough: %d", alarms >= 10, wrong, turns >= 3000);
}

static void *echoes(void *with) {
    int fd = *(int *)with;
    char data[4096];
    ssize_t got;
    while ((got = recv(fd, data, sizeof data, 0)) > 0) send_all(fd, data, got);
    return NULL;
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    pthread_t threads[2] = {start(echoes, &fds[0]), start(echoes, &fds[1])};
    for (int i = 0; i < 2; i++) finish(threads[i]);
    say("both have ended");
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
