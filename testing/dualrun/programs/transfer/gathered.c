// What one call sends of several pieces, a reader that waits has in one, wherever it goes: readers there are that count on it.
#include "dual.h"
#include <sys/uio.h>

enum { ROUNDS = 200, PIECES = 5, PIECE = 7 };

static void subject(int fd) {
    for (int i = 0; i < ROUNDS; i++) {
        // From the middle on it goes by TCP once more.
        unsigned rate = 1u << 30;
        if (i == ROUNDS / 2) OK(setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate));
        struct iovec pieces[PIECES];
        for (int at = 0; at < PIECES; at++) pieces[at] = (struct iovec){.iov_base = "a piece", .iov_len = PIECE};
        ssize_t sent = i % 2 ? writev(fd, pieces, PIECES) : sendmsg(fd, &(struct msghdr){.msg_iov = pieces, .msg_iovlen = PIECES}, 0);
        if (sent != PIECES * PIECE) die(__LINE__, "sent");
        if (recv_all(fd, buf, 1) != 1) die(__LINE__, "answer");
    }
    meet();
}

static void partner(int fd) {
    int parts = 0;
    for (int i = 0; i < ROUNDS; i++) {
        for (int got = 0; got < PIECES * PIECE; parts++) got += OK(recv(fd, buf + got, PIECES * PIECE - got, 0));
        send_text(fd, "!");
    }
    say("%d messages in %d parts", ROUNDS, parts);
    meet();
}

SUBJECT_AND_PARTNER(subject, partner)
