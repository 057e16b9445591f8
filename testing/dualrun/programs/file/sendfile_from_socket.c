// A socket cannot be what sendfile reads from, and a file opened for appending not what it writes to.
#include "dual.h"
#include <sys/sendfile.h>

static void subject(int fd) {
    char path[] = "/tmp/dualrun-XXXXXX";
    int file = OK(mkstemp(path));
    OK(unlink(path));
    settle(fd, 4);
    TRY(sendfile(file, fd, NULL, 4));
    off_t at = 0;
    TRY(sendfile(file, fd, &at, 4));
    TRY(sendfile(fd, fd, NULL, 4));
    TRY(sendfile(fd, -1, NULL, 4));
    TRY(sendfile(-1, file, NULL, 4));
    hear(fd, 4);
    send_text(fd, "end");
}

static void partner(int fd) {
    send_text(fd, "data");
    hear(fd, 3);
}

SUBJECT_AND_PARTNER(subject, partner)
