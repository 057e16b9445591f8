// Socket to pipe to socket, as a proxy does.
#include "dual.h"

static void subject(int fd) {
    int ends[2];
    OK(pipe(ends));
    size_t total = 0;
    while (total < 300000) {
        ssize_t in = OK(splice(fd, NULL, ends[1], NULL, 65536, 0));
        if (in == 0) break;
        for (ssize_t left = in; left > 0;) left -= OK(splice(ends[0], NULL, fd, NULL, left, 0));
        total += in;
    }
    say("%zu bytes", total);
    OK(fcntl(fd, F_SETFL, O_NONBLOCK));
    TRY(splice(fd, NULL, ends[1], NULL, 100, SPLICE_F_NONBLOCK));
    OK(fcntl(fd, F_SETFL, 0));
    tell();
    settle_end(fd);
    TRY(splice(fd, NULL, ends[1], NULL, 100, 0));
    off_t at = 0;
    TRY(splice(fd, &at, ends[1], NULL, 100, 0));
    TRY(splice(fd, NULL, fd, NULL, 100, 0));
}

static void partner(int fd) {
    for (int i = 0; i < 30; i++) {
        fill(buf, 10000, 0);
        send_all(fd, buf, 10000);
        char back[10000];
        if (recv_all(fd, back, 10000) != 10000 || !as_filled(back, 10000, 0)) say("not what was sent");
    }
    await();
    shutdown(fd, SHUT_WR);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
