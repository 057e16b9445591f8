// A standard stream whose descriptor is a connection and something else in turn: it takes no more memory, and is the same stream.
#include "dual.h"
#include <malloc.h>

enum { ROUNDS = 2000 };

static void subject(int fd) {
    int null = OK(open("/dev/null", O_RDWR));
    size_t before = 0;
    for (int round = 0; round < ROUNDS; round++) {
        OK(dup2(fd, 1));
        printf("%04d", round);
        OK(fflush(stdout));
        OK(dup2(null, 1));
        printf("nobody hears this");
        OK(fflush(stdout));
        if (round == 10) before = mallinfo2().uordblks;
    }
    say("much memory: %d", mallinfo2().uordblks > before + 100000);
    OK(dup2(fd, 1));
    FILE *kept = stdout;
    OK(dup2(null, 1));
    OK(dup2(fd, 1));
    fputs("kept", kept);
    TRY(fflush(kept));
    TRY(fileno(kept));
    TRY(fileno(stdout));
    OK(dup2(null, 1));
    TRY(fileno(kept));
    TRY(freopen("/dev/null", "w", kept) != NULL);
    OK(dup2(fd, 1));
    printf("again");
    TRY(fflush(stdout));
}

static void partner(int fd) {
    recv_all(fd, buf, 4 * ROUNDS);
    say("%.4s to %.4s", buf, buf + 4 * ROUNDS - 4);
    hear(fd, 4);
    hear(fd, 5);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
