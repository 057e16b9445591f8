// Several threads send records on one connection: each record of one send arrives whole.
#include "dual.h"

enum { THREADS = 4, RECORDS = 2000, LENGTH = 64 };

static int connection;

static void *sends(void *with) {
    char record[LENGTH];
    memset(record, 'a' + (intptr_t)with, LENGTH);
    for (int i = 0; i < RECORDS; i++)
        if (send(connection, record, LENGTH, 0) != LENGTH) die(__LINE__, "send");
    return NULL;
}

static void subject(int fd) {
    connection = fd;
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) threads[i] = start(sends, (void *)i);
    for (int i = 0; i < THREADS; i++) finish(threads[i]);
    OK(shutdown(fd, SHUT_WR));
    hear(fd, 2);
}

static void partner(int fd) {
    int counts[THREADS] = {0}, torn = 0;
    char record[LENGTH];
    while (recv_all(fd, record, LENGTH) == LENGTH) {
        for (int i = 1; i < LENGTH; i++) torn += record[i] != record[0];
        if (record[0] >= 'a' && record[0] < 'a' + THREADS) counts[record[0] - 'a']++;
    }
    for (int i = 0; i < THREADS; i++) say("thread %d: %d", i, counts[i]);
    say("torn %d", torn);
    send_text(fd, "ok");
}

SUBJECT_AND_PARTNER(subject, partner)
