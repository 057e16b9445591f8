// readv and writev with many pieces, and with counts that are refused.
#include "dual.h"

enum { PIECES = 1024 };

static void subject(int fd) {
    static struct iovec pieces[PIECES + 1];
    fill(buf, sizeof buf, 0);
    for (int i = 0; i <= PIECES; i++) pieces[i] = (struct iovec){buf + 300 * i, 300};
    TRY(writev(fd, pieces, PIECES)); // more than 256 kB in one call
    TRY(writev(fd, pieces, PIECES + 1));
    TRY(writev(fd, pieces, 0));
    TRY(writev(fd, pieces, opaque(-1)));
    pieces[0].iov_len = -1;
    TRY(writev(fd, pieces, 2));
    TRY(readv(fd, pieces, 2));
    TRY(readv(fd, pieces, PIECES + 1));
    TRY(readv(fd, pieces, 0));
    settle(fd, 1000);
    memset(buf, 0, sizeof buf);
    for (int i = 0; i < PIECES; i++) pieces[i] = (struct iovec){buf + 10 * i, i % 11};
    TRY(readv(fd, pieces, PIECES));
    say("%lx", digest(buf, 10 * PIECES));
}

static void partner(int fd) {
    recv_filled(fd, 300 * PIECES);
    fill(buf, 1000, 0);
    send_all(fd, buf, 1000);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
