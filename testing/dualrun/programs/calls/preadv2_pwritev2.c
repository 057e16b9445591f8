// At offset -1 they are readv and writev with flags; elsewhere a socket cannot seek.
#include "dual.h"

static void subject(int fd) {
    struct iovec out[2] = {{"ab", 2}, {"cd", 2}};
    TRY(pwritev2(fd, out, 2, -1, 0));
    TRY(pwritev2(fd, out, 2, 0, 0));
    TRY(pwritev2(fd, out, 2, -1, 0x4000));
    TRY(pwritev(fd, out, 2, 0));
    TRY(pwrite(fd, "x", 1, 0));
    struct iovec in[2] = {{buf, 3}, {buf + 3, 100}};
    settle(fd, 6);
    TRY(preadv2(fd, in, 2, -1, 0));
    say("%.6s", buf);
    TRY(preadv2(fd, in, 2, -1, RWF_NOWAIT));
    TRY(preadv2(fd, in, 2, 5, 0));
    TRY(preadv(fd, in, 2, 0));
    TRY(pread(fd, buf, 10, 0));
    TRY(lseek(fd, 0, SEEK_CUR));
    TRY(lseek(fd, 0, SEEK_END));
    meet();
}

static void partner(int fd) {
    hear(fd, 4);
    send_text(fd, "012345");
    meet();
}

SUBJECT_AND_PARTNER(subject, partner)
