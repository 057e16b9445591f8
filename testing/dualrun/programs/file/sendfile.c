// From a file into the connection: with an offset, with the file's own position, past its end.
#include "dual.h"
#include <sys/sendfile.h>

static int file_of(size_t length) {
    char path[] = "/tmp/dualrun-XXXXXX";
    int file = OK(mkstemp(path));
    OK(unlink(path));
    fill(buf, length, 0);
    OK(write(file, buf, length));
    return file;
}

static void subject(int fd) {
    int file = file_of(600000);
    off_t at = 0;
    size_t left = 600000;
    while (left > 0) left -= OK(sendfile(fd, file, &at, left));
    say("offset %ld, position %ld", (long)at, (long)lseek(file, 0, SEEK_CUR));
    at = 100;
    TRY(sendfile(fd, file, &at, 10));
    say("offset %ld", (long)at);
    OK(lseek(file, 7, SEEK_SET));
    TRY(sendfile(fd, file, NULL, 10));
    say("position %ld", (long)lseek(file, 0, SEEK_CUR));
    at = 599995;
    TRY(sendfile(fd, file, &at, 100));
    TRY(sendfile(fd, file, &at, 100));
    TRY(sendfile(fd, file, &at, 0));
    at = -1;
    TRY(sendfile(fd, file, &at, 10));
    at = 0;
    TRY(sendfile(fd, file, &at, -1));
    say("offset %ld", (long)at);
    TRY(sendfile(fd, OK(open("/", O_RDONLY)), NULL, 10));
    shutdown(fd, SHUT_WR);
    hear(fd, 2);
}

static void partner(int fd) {
    recv_filled(fd, 600000);
    ssize_t got = recv_all(fd, buf, 25);
    say("%ld bytes: %d %d %d", (long)got, as_filled(buf, 10, 100), as_filled(buf + 10, 10, 7),
        as_filled(buf + 20, 5, 599995));
    send_text(fd, "ok");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
