// Options whose value is no memory, or of a length that none has.
#include "dual.h"

static void set(const char *what, int fd, int level, int name) {
    void *nowhere = (void *)(opaque(0) + 8), *nothing = (void *)opaque(0);
    int on = 1;
    say("%s", what);
    TRY(setsockopt(fd, level, name, nowhere, sizeof on));
    TRY(setsockopt(fd, level, name, nothing, sizeof on));
    TRY(setsockopt(fd, level, name, &on, -1));
    TRY(setsockopt(fd, level, name, nowhere, 0));
}

static void subject(int fd) {
    void *nowhere = (void *)(opaque(0) + 8);
    set("nodelay", fd, IPPROTO_TCP, TCP_NODELAY);
    set("cork", fd, IPPROTO_TCP, TCP_CORK);
    set("low water", fd, SOL_SOCKET, SO_RCVLOWAT);
    set("receive time-out", fd, SOL_SOCKET, SO_RCVTIMEO);
    set("pacing", fd, SOL_SOCKET, SO_MAX_PACING_RATE);
    set("peek", fd, SOL_SOCKET, SO_PEEK_OFF);
    TRY(setsockopt(fd, IPPROTO_TCP, TCP_ULP, nowhere, 4));
    socklen_t length = sizeof(int);
    TRY(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, nowhere, &length));
    TRY(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &length, nowhere));
    TRY(getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, nowhere, &length));
    TRY(getsockopt(fd, SOL_SOCKET, SO_ERROR, nowhere, &length));
    TRY(getsockopt(fd, IPPROTO_TCP, TCP_INFO, nowhere, &length));
    TRY(ioctl(fd, FIONREAD, nowhere));
    TRY(ioctl(fd, FIONBIO, nowhere));
    send_text(fd, "done");
}

static void partner(int fd) { hear(fd, 4); }

SUBJECT_AND_PARTNER(subject, partner)
