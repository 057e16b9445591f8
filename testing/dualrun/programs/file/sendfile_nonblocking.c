// Into a full connection: a part, then EAGAIN; the offset says how far it came.
#include "dual.h"
#include <sys/sendfile.h>

enum { LENGTH = 16 << 20 };

static void subject(int fd) {
    char path[] = "/tmp/dualrun-XXXXXX";
    int file = OK(mkstemp(path));
    OK(unlink(path));
    for (size_t at = 0; at < LENGTH; at += sizeof buf) {
        fill(buf, sizeof buf, at);
        OK(write(file, buf, sizeof buf));
    }
    OK(fcntl(fd, F_SETFL, O_NONBLOCK));
    off_t at = 0;
    int full = 0;
    while (at < LENGTH) {
        off_t before = at;
        ssize_t sent = sendfile(fd, file, &at, LENGTH - at);
        if (sent >= 0 && at - before != sent) say("moved %ld, returned %ld", (long)(at - before), (long)sent);
        if (sent >= 0) continue;
        if (errno != EAGAIN) die(__LINE__, "sendfile");
        if (full++ == 0) tell();
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        OK(poll(&room, 1, -1));
    }
    say("was full: %d", full > 0);
    shutdown(fd, SHUT_WR);
    OK(fcntl(fd, F_SETFL, 0));
    recv_to_end(fd);
}

static void partner(int fd) {
    await();
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
