// From a pipe into a connection whose other end does not read: when time is up, or a signal comes, what has not been sent is still in the pipe.
#include "alarms.h"
#include <sys/time.h>

enum { TOTAL = 24 << 20, PIECE = 65536 };

static void relays(int fd, int from, int to, const char *what) {
    size_t put = 0, sent = 0;
    int stopped = 0;
    while (sent < TOTAL) {
        if (put == sent) {
            fill(buf, PIECE, put);
            put += OK(write(to, buf, PIECE));
        }
        ssize_t moved = splice(from, NULL, fd, NULL, put - sent, 0);
        if (moved >= 0) {
            sent += moved;
            continue;
        }
        if (stopped++) continue;
        int error = errno, left;
        OK(ioctl(from, FIONREAD, &left));
        say("%s: %s, in neither: %zu", what, strerrorname_np(error), put - sent - left);
        tell();
    }
    say("%s: %d", what, stopped > 0);
}

static void subject(int fd) {
    int ends[2];
    OK(pipe(ends));
    OK(fcntl(ends[1], F_SETPIPE_SZ, PIECE));
    struct timeval some = {.tv_usec = 100000}, none = {0};
    OK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &some, sizeof some));
    relays(fd, ends[0], ends[1], "time");
    OK(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none));
    alarms_begin(0);
    relays(fd, ends[0], ends[1], "signal");
    alarms_end();
}

static void partner(int fd) {
    for (int round = 0; round < 2; round++) {
        await();
        recv_filled(fd, TOTAL);
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
