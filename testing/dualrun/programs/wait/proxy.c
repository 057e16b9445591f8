// A proxy between two connections with poll and small pieces, until both ends have closed.
#include "dual.h"

static void subject(void) {
    int fds[2], open_ends = 2;
    connected_twice(fds);
    struct pollfd set[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
    while (open_ends > 0) {
        OK(poll(set, 2, -1));
        for (int i = 0; i < 2; i++) {
            if (set[i].revents == 0) continue;
            ssize_t got = OK(recv(fds[i], buf, 3000, 0));
            if (got > 0) {
                send_all(fds[1 - i], buf, got);
                continue;
            }
            OK(shutdown(fds[1 - i], SHUT_WR));
            set[i].fd = -1;
            open_ends--;
        }
    }
    say("done");
}

static void *upload(void *with) {
    send_filled(*(int *)with, 500000);
    OK(shutdown(*(int *)with, SHUT_WR));
    return NULL;
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    pthread_t thread = start(upload, &fds[0]);
    recv_to_end(fds[1]);
    finish(thread);
    upload(&fds[1]);
    recv_to_end(fds[0]);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
