// One end writes what a ring does not hold, and TCP does; the other does nothing before that is done.
#include "much.h"

static void subject(int fd) {
    write_much(fd, NULL);
    tell();
    hear(fd, 4);
    OK(shutdown(fd, SHUT_WR));
}

static void partner(int fd) {
    await();
    recv_filled(fd, MUCH);
    send_text(fd, "read");
    TRY(recv(fd, buf, 1, 0));
}

SUBJECT_AND_PARTNER(subject, partner)
