// A relay that waits for nothing but in poll: from the socket into a pipe, and back from there, with SPLICE_F_NONBLOCK on a pipe that is set to wait.
#include "dual.h"

enum { BYTES = 6 << 20 };

static void subject(int fd) {
    int ends[2], piped = 0, ended = 0;
    OK(pipe(ends));
    OK(fcntl(fd, F_SETFL, O_NONBLOCK));
    while (!ended || piped > 0) {
        struct pollfd entry = {.fd = fd, .events = (piped < 32768 && !ended ? POLLIN : 0) | (piped > 0 ? POLLOUT : 0)};
        OK(poll(&entry, 1, -1));
        if (entry.revents & POLLIN) {
            ssize_t in = splice(fd, NULL, ends[1], NULL, 1 << 20, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
            if (in < 0 && errno != EAGAIN) die(__LINE__, "splice from the socket");
            if (in == 0) ended = 1;
            if (in > 0) piped += in;
        }
        if (piped > 0) {
            ssize_t out = splice(ends[0], NULL, fd, NULL, piped, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
            if (out < 0 && errno != EAGAIN) die(__LINE__, "splice to the socket");
            if (out > 0) piped -= out;
        }
    }
    OK(shutdown(fd, SHUT_WR));
    say("ended");
}

static void *sender(void *fd) {
    send_filled(*(int *)fd, BYTES);
    OK(shutdown(*(int *)fd, SHUT_WR));
    return NULL;
}

static void partner(int fd) {
    pthread_t thread = start(sender, &fd);
    recv_to_end(fd);
    pthread_join(thread, NULL);
}

SUBJECT_AND_PARTNER(subject, partner)
