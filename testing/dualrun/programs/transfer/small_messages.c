// Many small sends without an answer, with and without TCP_NODELAY.
#include "dual.h"

enum { COUNT = 20000 };

static void subject(int fd) {
    OK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
    for (int i = 0; i < 2 * COUNT; i++) {
        char message[64];
        if (i == COUNT) OK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){0}, sizeof(int)));
        fill(message, 64, (uint64_t)i * 64);
        if (send(fd, message, 64, 0) != 64) die(__LINE__, "send");
    }
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

static void partner(int fd) { recv_to_end(fd); }

SUBJECT_AND_PARTNER(subject, partner)
