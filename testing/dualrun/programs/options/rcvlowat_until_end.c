// SO_RCVLOWAT: who waits for more than comes has what came at the end of it, also where nothing had gone by memory before.
#include "dual.h"

static void subject(int fd) {
    int least = 100;
    OK(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least));
    for (int turn = 0; turn < 3; turn++) {
        send_text(fd, "more");
        hear(fd, 100);
    }
    send_text(fd, "rest");
    settle(fd, 10);
    tell_number(gettid());
    TRY(recv(fd, buf, 1000, MSG_PEEK | MSG_WAITALL));
    TRY(recv(fd, buf, 1000, 0));
    TRY(recv(fd, buf, 1000, 0));
}

static void partner(int fd) {
    for (int turn = 0; turn < 3; turn++) {
        hear(fd, 4);
        send_filled(fd, 100);
    }
    hear(fd, 4);
    send_text(fd, "0123456789");
    wait_asleep(await_number());
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
