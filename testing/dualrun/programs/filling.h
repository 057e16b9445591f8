// More than there is room for.
#ifndef DUAL_FILLING_H
#define DUAL_FILLING_H

#include "talk.h"

// Sends for as long as there is room, of which TCP has little, until the other end says that it is there; how much went.
SHARED uint32_t fill_up(int fd) {
    char chunk[16384];
    uint32_t total = 0;
    int little = 4096;
    OK(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof little));
    struct pollfd channel = {.fd = CHANNEL, .events = POLLIN};
    while (poll(&channel, 1, 0) == 0) {
        fill(chunk, sizeof chunk, total);
        ssize_t sent = send(fd, chunk, sizeof chunk, MSG_DONTWAIT);
        if (sent > 0) total += sent;
        else if (errno == EAGAIN) sched_yield();
        else die(__LINE__, "fill_up");
    }
    await();
    return total;
}

// The other end of that: reads what it says that it has sent, and the end.
SHARED void recv_after(const char *what, int fd) {
    tell();
    int64_t total = await_number();
    char chunk[16384];
    int64_t at = 0;
    for (ssize_t got; (got = recv(fd, chunk, sizeof chunk, 0)) != 0; at += got) {
        if (got < 0) {
            say("%s: %s", what, strerrorname_np(errno));
            return;
        }
        if (!as_filled(chunk, got, at)) die(__LINE__, "recv_after: other bytes than were sent");
    }
    say("%s: %s", what, at == total ? "all, and the end" : at < total ? "not all" : "more");
}

// One end of that: becomes a program without a dynamic linker, with the channel, once something is there.
SHARED void read_on_as_static(int fd) {
    settle(fd, 20000);
    char *program = getenv("DUAL_STATIC");
    OK(fcntl(CHANNEL, F_SETFD, 0));
    OK(execv(program, words_again(program, "the static program", fd)));
}

#endif
