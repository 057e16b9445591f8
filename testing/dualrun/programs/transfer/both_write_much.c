// Each end writes what two rings do not hold, and TCP does, before it reads.
#include "much.h"

static void end(int fd) {
    write_much(fd, NULL);
    read_much(fd);
}

SUBJECT_AND_PARTNER(end, end)
