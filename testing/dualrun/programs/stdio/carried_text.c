// Text in the buffer of stdout whose descriptor becomes a connection, and something else again: it is written when the stream writes, to what the
// descriptor is by then.
#include "dual.h"

static int pipe_ends[2];

// What the pipe has by now.
static void piped(const char *when) {
    int have;
    OK(ioctl(pipe_ends[0], FIONREAD, &have));
    if (have > 0) OK(read(pipe_ends[0], buf, have));
    say("%s: %d bytes in the pipe \"%.*s\"", when, have, have < 40 ? have : 40, buf);
}

static void in_a_child(int fd) {
    pid_t child = OK(fork());
    if (child == 0) {
        OK(dup2(fd, 1));
        execlp("echo", "echo", "from the child", (char *)NULL);
        _exit(9);
    }
    say_child("the child", child);
}

static void subject(int fd) {
    static char large[20000];
    OK(pipe(pipe_ends));
    OK(dup2(pipe_ends[1], 1));
    setvbuf(stdout, NULL, _IOFBF, 4096);

    printf("before ");
    in_a_child(fd);
    OK(dup2(fd, 1));
    printf("after\n");
    TRY(fflush(stdout));
    piped("to the connection");

    printf("again before ");
    OK(dup2(pipe_ends[1], 1));
    printf("again after");
    TRY(fflush(stdout));
    piped("to the pipe");

    // There and back, and what has failed stays failed.
    printf("there ");
    OK(dup2(fd, 1));
    printf("and ");
    OK(dup2(pipe_ends[1], 1));
    printf("back");
    TRY(fflush(stdout));
    piped("there and back");

    // Lines that the stream has from before it passed them on, and part of one.
    printf("first\nsecond\npart");
    setvbuf(stdout, NULL, _IOLBF, 0);
    OK(dup2(fd, 1));
    piped("a line");
    OK(dup2(pipe_ends[1], 1));
    piped("a line again");
    TRY(fflush(stdout));
    piped("lines");
    printf("a part ");
    OK(dup2(fd, 1));
    printf("and its ");
    putchar('e');
    putchar('n');
    putchar('d');
    putchar('\n');
    await();

    // More than a usual buffer has.
    setvbuf(stdout, large, _IOFBF, sizeof large);
    OK(dup2(pipe_ends[1], 1));
    fill(buf, 15000, 0);
    TRY(fwrite(buf, 1, 15000, stdout));
    piped("much");
    in_a_child(fd);
    OK(dup2(fd, 1));
    TRY(fflush(stdout));
    piped("much");
    await();

    // An error stays.
    int full = OK(open("/dev/full", O_WRONLY));
    OK(dup2(full, 1));
    printf("x");
    TRY(fflush(stdout));
    TRY(ferror(stdout) != 0);
    OK(dup2(fd, 1));
    TRY(ferror(stdout) != 0);
    OK(dup2(pipe_ends[1], 1));
    TRY(ferror(stdout) != 0);
    clearerr(stdout);
    OK(dup2(fd, 1));
    TRY(ferror(stdout) != 0);

    // What nobody writes is written at the end.
    OK(dup2(pipe_ends[1], 1));
    printf("the end");
    OK(dup2(fd, 1));
}

static void partner(int fd) {
    hear(fd, 15 + 13);
    hear(fd, 19);
    tell();
    hear(fd, 15);
    recv_filled(fd, 15000);
    tell();
    char rest[100] = "";
    recv_all(fd, rest, sizeof rest);
    say("rest \"%s\"", rest);
}

SUBJECT_AND_PARTNER(subject, partner)
