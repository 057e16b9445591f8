// Where a filter refuses close_range the connection stays, and closefrom closes one by one.
#include "dual.h"
#include "refused.h"
#include <linux/close_range.h>

static void subject(int fd) {
    OK(dup2(fd, 1000));
    refuse(SYS_close_range, EPERM);
    TRY(close_range(1000, 1000, 0));
    TRY(close_range(990, 1010, CLOSE_RANGE_CLOEXEC));
    TRY(close_range(10, 5, 0));
    TRY(fcntl(1000, F_GETFD));
    send_text(1000, "still there");
    hear(1000, 5);
    OK(close(fd));
    send_text(1000, "the last");
    hear(1000, 5);
    closefrom(950);
    TRY(fcntl(1000, F_GETFD));
    await();
}

static void partner(int fd) {
    hear(fd, 11);
    send_text(fd, "as is");
    hear(fd, 8);
    send_text(fd, "as is");
    recv_to_end(fd);
    tell();
}

SUBJECT_AND_PARTNER(subject, partner)
