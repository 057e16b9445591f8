// A large file in one call, during which a fresh connection may be upgraded; more is asked for than there is.
#include "dual.h"
#include <sys/sendfile.h>

enum { LENGTH = 24 << 20 };

static void subject(int fd) {
    char path[] = "/tmp/dualrun-XXXXXX";
    int file = OK(mkstemp(path));
    OK(unlink(path));
    for (size_t at = 0; at < LENGTH; at += sizeof buf) {
        fill(buf, sizeof buf, at);
        OK(write(file, buf, sizeof buf));
    }
    off_t at = 0;
    TRY(sendfile(fd, file, &at, LENGTH));
    say("offset %ld, position %ld", (long)at, (long)lseek(file, 0, SEEK_SET));
    TRY(sendfile(fd, file, NULL, (size_t)LENGTH + 100000));
    say("position %ld", (long)lseek(file, 0, SEEK_CUR));
    TRY(sendfile(fd, file, NULL, 1));
    hear(fd, 2);
}

static void partner(int fd) {
    recv_filled(fd, LENGTH);
    recv_filled(fd, LENGTH);
    send_text(fd, "ok");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
