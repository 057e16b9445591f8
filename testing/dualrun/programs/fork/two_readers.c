// Parent and child wait on one connection at once: each record goes to one of them.
#include "dual.h"

enum { RECORDS = 400 };

static void subject(int fd) {
    int results[2];
    OK(pipe(results));
    pid_t child = OK(fork());
    uint32_t sum = 0;
    char record[1];
    // One byte at a time, so that no record can be torn.
    while (recv(fd, record, 1, 0) == 1) sum += (unsigned char)record[0];
    if (child == 0) {
        OK(write(results[1], &sum, sizeof sum));
        _exit(0);
    }
    uint32_t other;
    OK(read(results[0], &other, sizeof other));
    say("sum %u", sum + other);
    say_child("child", child);
}

static void partner(int fd) {
    uint32_t sum = 0;
    for (int i = 0; i < RECORDS; i++) {
        buf[0] = i;
        sum += i & 255;
        send_all(fd, buf, 1);
    }
    OK(shutdown(fd, SHUT_WR));
    say("sum %u", sum);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
