// At offset -1 they are readv and writev with flags; elsewhere a socket cannot seek.
#include "dual.h"

enum { NO_APPEND = 0x20, NO_SIGNAL = 0x100 };

// Linux has had the two since 6.9 and 6.18.
static int is_known(int flag) {
    int null = OK(open("/dev/null", O_WRONLY));
    struct iovec one = {"x", 1};
    int known = pwritev2(null, &one, 1, -1, flag) == 1;
    OK(close(null));
    return known;
}

static void with_flag(int fd, int flag) {
    struct iovec more = {"ef", 2};
    if (is_known(flag)) TRY(pwritev2(fd, &more, 1, -1, flag));
    else OK(send(fd, "ef", 2, 0));
}

static void subject(int fd) {
    struct iovec out[2] = {{"ab", 2}, {"cd", 2}};
    TRY(pwritev2(fd, out, 2, -1, 0));
    TRY(pwritev2(fd, out, 2, 0, 0));
    TRY(pwritev2(fd, out, 2, -1, 0x4000));
    for (int flag = 0x40; flag != 0x10000; flag *= 2)
        if (!is_known(flag)) TRY(pwritev2(fd, out, 2, -1, flag));
    TRY(pwritev2(fd, out, 2, -1, RWF_APPEND | NO_APPEND) < 0);
    with_flag(fd, NO_APPEND);
    with_flag(fd, NO_SIGNAL);
    TRY(pwritev(fd, out, 2, 0));
    TRY(pwrite(fd, "x", 1, 0));
    struct iovec in[2] = {{buf, 3}, {buf + 3, 100}};
    settle(fd, 6);
    TRY(preadv2(fd, in, 2, -1, 0));
    say("%.6s", buf);
    TRY(preadv2(fd, in, 2, -1, RWF_NOWAIT));
    for (int flag = 0x40; flag != 0x10000; flag *= 2)
        if (!is_known(flag)) TRY(preadv2(fd, in, 2, -1, flag));
    TRY(preadv2(fd, in, 2, 5, 0));
    TRY(preadv(fd, in, 2, 0));
    TRY(pread(fd, buf, 10, 0));
    TRY(lseek(fd, 0, SEEK_CUR));
    TRY(lseek(fd, 0, SEEK_END));
    meet();
}

static void partner(int fd) {
    hear(fd, 8);
    send_text(fd, "012345");
    meet();
}

SUBJECT_AND_PARTNER(subject, partner)
