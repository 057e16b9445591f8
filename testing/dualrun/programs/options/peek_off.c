// SO_PEEK_OFF: each peek begins where the last one ended; what is received moves the place back. The way back to TCP wants the
// partner in a call on the connection.
#include "dual.h"

static void peek(int fd) {
    char text[8] = "";
    ssize_t got = TRY(recv(fd, text, 3, MSG_PEEK));
    int at = -2;
    OK(getsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &at, &(socklen_t){sizeof at}));
    say("\"%.*s\", the next at %d", (int)got, text, at);
}

static void subject(int fd) {
    settle(fd, 10);
    // Kernels before 6.9 do not have it for TCP.
    if (TRY(setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &(int){0}, sizeof(int))) < 0) return;
    peek(fd);
    peek(fd);
    hear(fd, 4);
    peek(fd);
    OK(setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &(int){-1}, sizeof(int)));
    peek(fd);
    hear(fd, 6);
}

static void partner(int fd) {
    send_text(fd, "0123456789");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
