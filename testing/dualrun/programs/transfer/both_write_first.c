// Each end writes more than a megabyte before it reads: the connection has to hold both.
#include "dual.h"

enum { MUCH = 3 << 19 };

static void write_then_read(int fd) {
    static char chunk[1 << 16];
    for (int sent = 0; sent < MUCH;) sent += OK(send(fd, chunk, sizeof chunk, 0));
    int got = 0;
    while (got < MUCH) got += OK(recv(fd, chunk, sizeof chunk, 0));
    say("got %d", got);
}

SUBJECT_AND_PARTNER(write_then_read, write_then_read)
