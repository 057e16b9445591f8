// Options told where there is room for less than an int: the first bytes of it.
#include "dual.h"

static void told(const char *what, int fd, int level, int name) {
    for (socklen_t room = 0; room < 6; room++) {
        unsigned char value[8];
        memset(value, 0xee, sizeof value);
        socklen_t length = room;
        int result = getsockopt(fd, level, name, value, &length);
        say("%s: %d, %u of %u: %02x %02x %02x %02x %02x", what, result, length, room, value[0], value[1], value[2],
            value[3], value[4]);
    }
}

static void subject(int fd) {
    int on = 1, bytes = 0x10203;
    told("nodelay", fd, IPPROTO_TCP, TCP_NODELAY);
    OK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    told("nodelay", fd, IPPROTO_TCP, TCP_NODELAY);
    OK(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on));
    told("cork", fd, IPPROTO_TCP, TCP_CORK);
    OK(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes));
    told("low water", fd, SOL_SOCKET, SO_RCVLOWAT);
    told("error", fd, SOL_SOCKET, SO_ERROR);
}

static void partner(int fd) { recv_to_end(fd); }

SUBJECT_AND_PARTNER(subject, partner)
