// syscall() with preadv2, pwritev2 and getsockopt.
#include "dual.h"
#include <sys/syscall.h>

static void option(int fd, const char *name, int level, int option) {
    int value = -1;
    socklen_t length = sizeof value;
    OK(syscall(SYS_getsockopt, (long)fd, (long)level, (long)option, &value, &length));
    say("%s %d, %u bytes", name, value, length);
}

static void subject(int fd) {
    settle(fd, 10);
    struct iovec in[] = {{buf, 2}, {buf + 2, 3}};
    TRY(syscall(SYS_preadv2, (long)fd, in, 2L, -1L, -1L, 0L));
    say("%.5s", buf);
    TRY(syscall(SYS_preadv2, (long)fd, in, 2L, 0L, 0L, 0L));
    struct iovec out = {"hello", 5};
    TRY(syscall(SYS_pwritev2, (long)fd, &out, 1L, -1L, -1L, 0L));
    option(fd, "nodelay", IPPROTO_TCP, TCP_NODELAY);
    option(fd, "cork", IPPROTO_TCP, TCP_CORK);
    OK(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &(int){3}, sizeof(int)));
    option(fd, "low water", SOL_SOCKET, SO_RCVLOWAT);
    option(fd, "error", SOL_SOCKET, SO_ERROR);
    hear(fd, 5);
    TRY(syscall(SYS_preadv2, (long)fd, in, 2L, -1L, -1L, (long)RWF_NOWAIT));
    send_text(fd, "end");
}

static void partner(int fd) {
    send_text(fd, "0123456789");
    hear(fd, 5);
    hear(fd, 3);
}

SUBJECT_AND_PARTNER(subject, partner)
