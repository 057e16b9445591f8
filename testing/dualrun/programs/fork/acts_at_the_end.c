// The process that forked ends while the streams of the C library are written out, one of which sends on the connection: its child, which does so, too, is
// not alone before the process is gone.
#include "dual.h"

enum { RECORD = 512, RECORDS = 6000 };

static int connection;

static void send_records(int fd, unsigned char who) {
    unsigned char record[RECORD];
    for (unsigned i = 0; i < RECORDS; i++) {
        memset(record, (unsigned char)(i + who), sizeof record);
        record[0] = who;
        record[1] = i & 0xff;
        record[2] = i >> 8;
        send_all(fd, record, sizeof record);
    }
}

static ssize_t at_the_end(void *cookie, const char *bytes, size_t length) {
    (void)cookie;
    (void)bytes;
    tell();
    send_records(connection, 0);
    return length;
}

static void subject(int fd) {
    connection = fd;
    // In between, so that nobody waits for the one that ends but this process, which has left the connection to both.
    pid_t family = OK(fork());
    if (family == 0) {
        if (OK(fork()) == 0) {
            // The other is on its way out.
            await();
            send_records(fd, 1);
            _exit(0);
        }
        FILE *last = fopencookie(NULL, "w", (cookie_io_functions_t){.write = at_the_end});
        fputc('.', last);
        exit(0);
    }
    close(fd);
    say_child("child", family);
}

static void partner(int fd) {
    // The one that ends has told the program; the other is told by this end.
    await();
    tell();
    unsigned next[2] = {0};
    const char *wrong = "nothing";
    unsigned char record[RECORD];
    size_t all = 0;
    while (recv(fd, record, sizeof record, MSG_WAITALL) == sizeof record) {
        unsigned who = record[0] & 1, number = record[1] | record[2] << 8;
        if (record[0] > 1 || number != next[who]) wrong = "a record is missing, or there twice";
        next[who] = number + 1;
        for (int i = 3; i < RECORD; i++) {
            if (record[i] != (unsigned char)(number + who)) wrong = "a record is broken";
        }
        all++;
    }
    say("%zu records, wrong: %s", all, wrong);
}

SUBJECT_AND_PARTNER(subject, partner)
