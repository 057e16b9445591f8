// Shutdown by one thread ends the recv and the send in which others wait, though the peer does nothing.
#include "dual.h"

static int connection;
static volatile int reader, writer;
static size_t total;

static void *reads(void *with) {
    reader = gettid();
    TRY(recv(connection, buf, 10, 0));
    return with;
}

static void *writes(void *with) {
    char *bytes = malloc(sizeof buf);
    fill(bytes, sizeof buf, 0);
    ssize_t sent;
    writer = gettid();
    while ((sent = send(connection, bytes, sizeof buf, MSG_NOSIGNAL)) > 0) {
        total += sent;
        fill(bytes, sizeof buf, total);
    }
    say("send: %s", strerrorname_np(errno));
    free(bytes);
    return with;
}

static void subject(int fd) {
    connection = fd;
    pthread_t thread = start(reads, NULL);
    while (reader == 0) sched_yield();
    wait_asleep(reader);
    OK(shutdown(fd, SHUT_RD));
    finish(thread);
    thread = start(writes, NULL);
    while (writer == 0) sched_yield();
    wait_asleep(writer);
    OK(shutdown(fd, SHUT_WR));
    finish(thread);
    tell_number(total);
}

static void partner(int fd) {
    int64_t total = await_number();
    int64_t got = 0;
    for (ssize_t part; (part = recv(fd, buf, sizeof buf, 0)) > 0; got += part)
        if (!as_filled(buf, part, got)) die(__LINE__, "other bytes than were sent");
    say("all of it: %d", got == total);
}

SUBJECT_AND_PARTNER(subject, partner)
