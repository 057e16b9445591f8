// sendfile from a connection into a pipe, which newer kernels carry out as splice.
#include "dual.h"
#include <sys/sendfile.h>

static void say_piped(int pipe) {
    int got = OK(read(pipe, buf, 100));
    say("piped: %.*s", got, buf);
}

static void subject(int fd) {
    int ends[2];
    OK(pipe(ends));
    settle(fd, 11);
    off_t at = 0;
    TRY(sendfile(ends[1], fd, &at, 4));
    TRY(sendfile(ends[0], fd, NULL, 4));
    TRY(sendfile(ends[1], fd, NULL, 0));
    if (TRY(sendfile(ends[1], fd, NULL, 4)) == 4) say_piped(ends[0]);
    if (TRY(sendfile(ends[1], fd, NULL, 100)) == 7) say_piped(ends[0]);
    OK(fcntl(fd, F_SETFL, O_NONBLOCK));
    TRY(sendfile(ends[1], fd, NULL, 4));
    OK(fcntl(fd, F_SETFL, 0));
    OK(fcntl(ends[1], F_SETFL, O_NONBLOCK));
    while (write(ends[1], buf, 4096) > 0) {}
    meet();
    settle(fd, 5);
    TRY(sendfile(ends[1], fd, NULL, 5));
    int file = OK(open("/dev/null", O_WRONLY));
    TRY(sendfile(file, fd, NULL, 5));
    hear(fd, 5);
    settle_end(fd);
    OK(fcntl(ends[0], F_SETFL, O_NONBLOCK));
    while (read(ends[0], buf, sizeof buf) > 0) {}
    TRY(sendfile(ends[1], fd, NULL, 5));
}

static void partner(int fd) {
    send_text(fd, "a few bytes");
    meet();
    send_text(fd, "five.");
}

SUBJECT_AND_PARTNER(subject, partner)
