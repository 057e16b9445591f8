// Who sends to an end that is shut both ways does not wait for ever: what comes there is answered by a reset, and so is a close with bytes unread.
#include "dual.h"

// When the sender begins, and what the other end does after the shutdown.
enum { BEFORE_IT_READS, BEFORE_IT_CLOSES, AFTERWARDS, WAYS };

static int connection;
static volatile int asleep;

static void *sends(void *with) {
    fill(buf, sizeof buf, 0);
    asleep = gettid();
    while (send(connection, buf, sizeof buf, MSG_NOSIGNAL) > 0) {}
    say("send: %s", strerrorname_np(errno));
    return with;
}

static void subject(int fd) {
    for (int way = 0; way < WAYS; way++) {
        if (way > 0) fd = connected();
        if (way != AFTERWARDS) await();
        TRY(shutdown(fd, SHUT_RDWR));
        if (way == BEFORE_IT_READS)
            while (recv(fd, buf, sizeof buf, 0) > 0) {}
        if (way == BEFORE_IT_CLOSES) OK(close(fd));
        if (way == AFTERWARDS) tell();
        await();
        if (way != BEFORE_IT_CLOSES) OK(close(fd));
    }
}

static void partner(int fd) {
    for (int way = 0; way < WAYS; way++) {
        connection = way > 0 ? connected() : fd;
        if (way == AFTERWARDS) await();
        asleep = 0;
        pthread_t sender = start(sends, NULL);
        while (asleep == 0) sched_yield();
        if (way != AFTERWARDS) {
            wait_asleep(asleep);
            tell();
        }
        finish(sender);
        TRY(recv(connection, buf, 1, 0));
        TRY(send(connection, "x", 1, MSG_NOSIGNAL));
        tell();
        OK(close(connection));
    }
}

SUBJECT_AND_PARTNER(subject, partner)
