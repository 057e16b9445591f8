// Streams meet errors: a peer that has reset, a non-blocking connection without data.
#include "dual.h"

static void subject(void) {
    int fds[2];
    connected_twice(fds);
    signal(SIGPIPE, SIG_IGN);
    OK(fcntl(fds[0], F_SETFL, O_NONBLOCK));
    FILE *in = fdopen(fds[0], "r");
    TRY(fgetc(in));
    TRY(ferror(in) != 0);
    clearerr(in);
    tell();
    settle(fds[0], 4);
    TRY(fgetc(in));
    TRY(fread(buf, 1, 10, in));
    FILE *out = fdopen(fds[1], "w");
    await();
    settle_end(fds[1]);
    fputs("too late", out);
    TRY(fflush(out));
    TRY(ferror(out) != 0);
    TRY(fclose(out));
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    await();
    send_text(fds[0], "data");
    struct linger now = {1, 0};
    OK(setsockopt(fds[1], SOL_SOCKET, SO_LINGER, &now, sizeof now));
    OK(close(fds[1]));
    tell();
    recv_to_end(fds[0]);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
