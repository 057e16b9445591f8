// dup3 with flags that there are not changes nothing at the number that it would have replaced.
#include "dual.h"

static void subject(int fd) {
    TRY(dup3(STDERR_FILENO, fd, 12345));
    TRY(dup3(STDERR_FILENO, fd, O_NONBLOCK));
    TRY(dup3(899, fd, O_CLOEXEC));
    send_text(fd, "still there");
    hear(fd, 5);
}

static void partner(int fd) {
    hear(fd, 11);
    send_text(fd, "as is");
}

SUBJECT_AND_PARTNER(subject, partner)
