// A receive ends before an urgent byte, also where a buffer ends there and another one follows, or where it drops what comes.
#include "dual.h"

static void subject(int fd) {
    for (int turn = 0; turn < 2; turn++) {
        await();
        settle(fd, 4096);
        struct iovec rooms[2] = {{buf, 4096}, {buf + 4096, 4096}};
        if (turn == 0) TRY(readv(fd, rooms, 2));
        else TRY(recv(fd, buf, 8192, MSG_TRUNC));
        TRY(recv(fd, buf, 8192, MSG_WAITALL));
        tell();
    }
}

// The next urgent byte comes when the one before has been passed, or that would be among the others.
static void partner(int fd) {
    for (int turn = 0; turn < 2; turn++) {
        fill(buf, 8192, 0);
        OK(send(fd, buf, 4096, 0));
        OK(send(fd, "!", 1, MSG_OOB));
        OK(send(fd, buf, 8192, 0));
        tell();
        await();
    }
}

SUBJECT_AND_PARTNER(subject, partner)
