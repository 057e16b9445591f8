// read and write do what recv and send do without flags.
#include "dual.h"

static void subject(int fd) {
    TRY(write(fd, "hello", 5));
    settle(fd, 6);
    TRY(read(fd, buf, 2));
    TRY(read(fd, buf, 100));
    say("%.4s", buf);
    fill(buf, 500000, 0);
    TRY(write(fd, buf, 500000)); // a blocking write takes all
    settle_end(fd);
    TRY(read(fd, buf, 100));
    TRY(read(fd, buf, 100));
}

static void partner(int fd) {
    hear(fd, 5);
    send_text(fd, "worlds");
    recv_filled(fd, 500000);
    shutdown(fd, SHUT_WR);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
