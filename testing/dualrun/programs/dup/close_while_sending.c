// A thread sends more than fits while another closes the descriptor: all of it arrives, and then the end.
#include "dual.h"

enum { TOTAL = 16 << 20 };
static int connection;
static volatile int sender;

static void *sends(void *with) {
    char *data = malloc(TOTAL);
    fill(data, TOTAL, 0);
    sender = gettid();
    TRY(send(connection, data, TOTAL, 0));
    free(data);
    return with;
}

static void subject(int fd) {
    connection = fd;
    pthread_t thread = start(sends, NULL);
    while (sender == 0) sched_yield();
    wait_asleep(sender);
    TRY(close(fd));
    tell();
    finish(thread);
}

static void partner(int fd) {
    await();
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
