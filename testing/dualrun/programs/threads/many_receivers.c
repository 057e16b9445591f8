// Several threads receive on one connection: every byte goes to one of them.
#include "dual.h"

enum { THREADS = 4, TOTAL = 1000000 };

static int connection;
static unsigned long sum, bytes;

static void *receives(void *with) {
    unsigned char data[1000];
    ssize_t got;
    while ((got = recv(connection, data, sizeof data, 0)) > 0) {
        unsigned long part = 0;
        for (ssize_t i = 0; i < got; i++) part += data[i];
        __atomic_add_fetch(&sum, part, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&bytes, got, __ATOMIC_SEQ_CST);
    }
    return with;
}

static void subject(int fd) {
    connection = fd;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) threads[i] = start(receives, NULL);
    for (int i = 0; i < THREADS; i++) finish(threads[i]);
    say("%lu bytes, sum %lu", bytes, sum);
}

static void partner(int fd) {
    send_filled(fd, TOTAL);
    OK(shutdown(fd, SHUT_WR));
    unsigned long expected = 0;
    for (int i = 0; i < TOTAL; i++) expected += byte_at(i);
    say("sum %lu", expected);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
