// What two rings do not hold in each direction, and TCP over loopback does: each end writes it before it reads.
#ifndef DUAL_MUCH_H
#define DUAL_MUCH_H

#include "dual.h"

enum { MUCH = 3 << 20 };

// Writes it; where there is no room, `wait` waits for that, if there is one, or else the call.
SHARED void write_much(int fd, void (*wait)(int)) {
    static char chunk[50000];
    for (size_t sent = 0; sent < MUCH;) {
        size_t part = MUCH - sent < sizeof chunk ? MUCH - sent : sizeof chunk;
        fill(chunk, part, sent);
        ssize_t n = send(fd, chunk, part, wait ? MSG_DONTWAIT : 0);
        if (n > 0) sent += n;
        else if (wait && errno == EAGAIN) wait(fd);
        else die(__LINE__, "send");
    }
}

// Reads the other end's, and some more words after that, for the connection goes on.
SHARED void read_much(int fd) {
    recv_filled(fd, MUCH);
    send_text(fd, "read");
    hear(fd, 4);
    OK(shutdown(fd, SHUT_WR));
    TRY(recv(fd, buf, 1, 0));
}

// Writes it to one that does nothing before that is done, and hears that he has read it.
SHARED void write_unread(int fd, void (*wait)(int)) {
    write_much(fd, wait);
    tell();
    hear(fd, 4);
    OK(shutdown(fd, SHUT_WR));
}

SHARED void read_once_written(int fd) {
    await();
    recv_filled(fd, MUCH);
    send_text(fd, "read");
    TRY(recv(fd, buf, 1, 0));
}

#endif
