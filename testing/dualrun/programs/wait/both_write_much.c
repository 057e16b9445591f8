// Each end writes what two rings do not hold, and TCP does, before it reads, and waits for room in poll.
#include "much.h"

static void in_poll(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    OK(poll(&one, 1, -1));
}

static void end(int fd) {
    write_much(fd, in_poll);
    read_much(fd);
}

SUBJECT_AND_PARTNER(end, end)
