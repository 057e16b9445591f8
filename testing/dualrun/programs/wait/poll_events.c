// What poll says of a connection at each stage: idle, data, half closed by each end, both.
#include "dual.h"

enum { ALL = POLLIN | POLLPRI | POLLOUT | POLLRDHUP | POLLRDNORM | POLLWRNORM | POLLRDBAND | POLLWRBAND };

static void subject(int fd) {
    say_poll("idle", fd, ALL, 0);
    say_poll("idle, only input", fd, POLLIN, 0);
    say_poll("idle, nothing asked", fd, 0, 0);
    meet();
    say_poll("data", fd, POLLIN, -1);
    say_poll("data", fd, ALL, 0);
    hear(fd, 4);
    say_poll("taken", fd, ALL, 0);
    meet();
    settle_end(fd);
    say_poll("peer shut", fd, ALL, 0);
    say_poll("peer shut, nothing asked", fd, 0, 0);
    hear(fd, 4);
    say_poll("at the end", fd, ALL, 0);
    OK(shutdown(fd, SHUT_WR));
    say_poll("both shut", fd, ALL, 0);
    say_poll("both shut, nothing asked", fd, 0, 0);
    meet();
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    meet();
    send_text(fd, "last");
    OK(shutdown(fd, SHUT_WR));
    settle_end(fd);
    say_poll("both shut", fd, ALL, 0);
    meet();
}

SUBJECT_AND_PARTNER(subject, partner)
