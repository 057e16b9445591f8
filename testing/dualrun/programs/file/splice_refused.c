// splice with flags that there are none of, with a length below zero, and of nothing: it says so at once, though there is nothing to move.
#include "dual.h"

static void both(const char *what, int fd, int ends[2], size_t length, unsigned flags) {
    say("%s", what);
    TRY(splice(fd, NULL, ends[1], NULL, length, flags));
    TRY(splice(ends[0], NULL, fd, NULL, length, flags));
}

static void subject(int fd) {
    int ends[2];
    OK(pipe(ends));
    both("no such flag", fd, ends, 10, 0x10);
    both("another", fd, ends, 10, 0x80000000 | SPLICE_F_NONBLOCK);
    both("nothing", fd, ends, 0, 0);
    both("nothing, no such flag", fd, ends, 0, 0x10);
    OK(write(ends[1], "x", 1));
    tell();
    settle(fd, 5);
    both("below zero", fd, ends, -1, 0);
    both("below zero, no such flag", fd, ends, -1, 0x10);
    TRY(splice(-1, NULL, ends[1], NULL, 10, 0x10));
    both("all that there are", fd, ends, 10, SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT);
}

static void partner(int fd) {
    await();
    send_text(fd, "bytes");
    hear(fd, 6);
}

SUBJECT_AND_PARTNER(subject, partner)
