// setvbuf on a standard stream holds for whatever its descriptor is later: a connection, and what comes after it.
#include "dual.h"

static int pipe_ends[2];

// What the pipe has by now.
static void piped(const char *when) {
    int have;
    OK(ioctl(pipe_ends[0], FIONREAD, &have));
    say("%s: %d bytes in the pipe", when, have);
    if (have > 0) OK(read(pipe_ends[0], buf, have));
}

static void next(void) {
    tell();
    await();
}

static void subject(int fd) {
    OK(pipe(pipe_ends));
    setvbuf(stdout, NULL, _IONBF, 0);
    OK(dup2(fd, 1));
    printf("unbuffered");
    next();
    OK(dup2(pipe_ends[1], 1));
    printf("unbuffered");
    piped("unbuffered");
    setvbuf(stdout, NULL, _IOLBF, 0);
    OK(dup2(fd, 1));
    printf("a line\n");
    next();
    OK(dup2(pipe_ends[1], 1));
    printf("a line\n");
    piped("by line");
    OK(dup2(fd, 1));
    setvbuf(stdout, NULL, _IONBF, 0);
    printf("again");
    next();
    OK(dup2(pipe_ends[1], 1));
    printf("again");
    piped("unbuffered on the connection");
    OK(dup2(fd, 2));
    fputs("an error", stderr);
    next();
    setvbuf(stderr, NULL, _IOLBF, 0);
    fputs("the last\n", stderr);
    next();
    OK(dup2(pipe_ends[1], 2));
    fputs("the last\n", stderr);
    piped("stderr by line");
}

static void heard(int fd, int length) {
    await();
    struct pollfd one = {.fd = fd, .events = POLLIN};
    if (TRY(poll(&one, 1, 2000)) == 1) hear(fd, length);
    tell();
}

static void partner(int fd) {
    heard(fd, 10);
    heard(fd, 7);
    heard(fd, 5);
    heard(fd, 8);
    heard(fd, 9);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
