// The process that has the connection kills itself, right after sending: in the parent's place, without fork.
#include "dual.h"

static void subject(int fd) {
    send_filled(fd, 100000);
    raise(SIGKILL);
}

static void partner(int fd) { recv_to_end(fd); }

SUBJECT_AND_PARTNER(subject, partner)
