// Streams of files beside a connection's: whether all was written is told by the last call, and what was only read stays where it is.
#include "dual.h"

static void lost(const char *mode) {
    FILE *full = fopen("/dev/full", mode);
    if (full == NULL) die(__LINE__, "fopen");
    TRY(fputs("lost", full) >= 0);
    TRY(fclose(full));
    full = fopen("/dev/full", mode);
    if (full == NULL) die(__LINE__, "fopen");
    TRY(fputs("lost as well", full) >= 0);
    full = freopen("/dev/null", "r", full);
    TRY(full != NULL);
    if (full != NULL) TRY(fclose(full));
}

static void subject(int fd) {
    send_text(fd, "here");
    hear(fd, 5);
    lost("w");
    lost("a");

    char name[] = "/tmp/dualrun-plain-files-XXXXXX";
    int file = OK(mkstemp(name));
    OK(unlink(name));
    for (int line = 0; line < 2000; line++) OK(dprintf(file, "%09d\n", line));
    OK(lseek(file, 0, SEEK_SET));
    FILE *in = fdopen(dup(file), "r");
    TRY(fgetc(in));
    pid_t child = OK(fork());
    if (child == 0) {
        fclose(in);
        _exit(0);
    }
    OK(waitpid(child, NULL, 0));
    TRY(lseek(file, 0, SEEK_CUR));
    long rest = 0;
    while (fgetc(in) != EOF) rest++;
    say("%ld more bytes", rest);
    TRY(fclose(in));
    OK(close(file));
}

static void partner(int fd) {
    hear(fd, 4);
    send_text(fd, "there");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
