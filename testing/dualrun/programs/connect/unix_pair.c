// A pair of Unix sockets is none of ours.
#include "dual.h"

static void end(void) {
    int pair[2];
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    for (int i = 0; i < 300; i++) {
        char text[16];
        if (send_all(pair[0], "ping pong ping..", 16) != 16 || recv_all(pair[1], text, 16) != 16) die(__LINE__, "turn");
    }
    OK(write(pair[1], "data", 4));
    TRY(recv(pair[0], buf, 2, MSG_PEEK));
    TRY(read(pair[0], buf, 10));
    TRY(shutdown(pair[1], SHUT_WR));
    TRY(recv(pair[0], buf, 10, 0));
    OK(close(pair[0]));
    TRY(send(pair[1], "x", 1, MSG_NOSIGNAL));
    OK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair));
    TRY(fcntl(pair[0], F_GETFD));
    TRY(send(pair[0], "packet", 6, 0));
    TRY(recv(pair[1], buf, 3, MSG_TRUNC));
    TRY(recv(pair[1], buf, 3, 0));
}

SERVER_AND_CLIENT(end, end)
