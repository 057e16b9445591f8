// One fd twice in a set, its duplicate as well, each with its own mask; a timeout that expires; no fds at all.
#include "dual.h"

static void subject(int fd) {
    struct pollfd set[4] = {{fd, POLLIN, -1}, {fd, POLLOUT, -1}, {dup(fd), POLLIN | POLLOUT, -1}, {fd, 0, -1}};
    TRY(poll(set, 4, -1));
    for (int i = 0; i < 4; i++) say("%s", events(set[i].revents));
    meet();
    settle(fd, 1);
    TRY(poll(set, 4, -1));
    for (int i = 0; i < 4; i++) say("%s", events(set[i].revents));
    hear(fd, 1);
    TRY(poll(set, 1, 20));
    say("%s", events(set[0].revents));
    TRY(poll(set, 1, 0));
    TRY(poll(NULL, 0, 5));
}

static void partner(int fd) {
    meet();
    send_text(fd, "x");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
