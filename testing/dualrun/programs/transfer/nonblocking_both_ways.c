// The same with one thread, non-blocking calls and poll at both ends.
#include "dual.h"

enum { TOTAL = 8 << 20 };

static void end(int fd) {
    OK(fcntl(fd, F_SETFL, O_NONBLOCK));
    size_t sent = 0, received = 0;
    static char out[50000];
    int ended = 0;
    while (!ended) {
        struct pollfd one = {.fd = fd, .events = POLLIN | (sent < TOTAL ? POLLOUT : 0)};
        OK(poll(&one, 1, -1));
        if (one.revents & POLLOUT) {
            size_t part = TOTAL - sent < sizeof out ? TOTAL - sent : sizeof out;
            fill(out, part, sent);
            ssize_t done = send(fd, out, part, 0);
            if (done > 0) sent += done;
            else if (errno != EAGAIN) die(__LINE__, "send");
            if (sent == TOTAL) OK(shutdown(fd, SHUT_WR));
        }
        if (one.revents & POLLIN) {
            ssize_t got = recv(fd, buf, 70000, 0);
            if (got < 0 && errno != EAGAIN) die(__LINE__, "recv");
            if (got > 0 && !as_filled(buf, got, received)) die(__LINE__, "not as sent");
            if (got > 0) received += got;
            ended = got == 0;
        }
    }
    while (sent < TOTAL) {
        size_t part = TOTAL - sent < sizeof out ? TOTAL - sent : sizeof out;
        fill(out, part, sent);
        ssize_t done = send(fd, out, part, 0);
        if (done > 0) sent += done;
        else if (errno != EAGAIN) die(__LINE__, "send");
        else sched_yield();
    }
    say("%zu bytes", received);
}

SUBJECT_AND_PARTNER(end, end)
