// One end writes what a ring does not hold, and TCP does, and waits for room in poll; the other does nothing before that is done.
#include "much.h"

static void in_poll(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    OK(poll(&one, 1, -1));
}

static void subject(int fd) { write_unread(fd, in_poll); }

SUBJECT_AND_PARTNER(subject, read_once_written)
