/*
 * A server and a client of type SOCK_VIA: with the calls of sov.h, or, built with -DPRELOADED, with those of POSIX under libsovia.so.
 *
 * echo serve PORT MODE     waits, accepts one connection and answers; says "listening" first
 * echo ask PORT MODE       connects, asks and checks
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef PRELOADED
#include <sys/socket.h>
#define SOCK_VIA 15
#define sov_socket socket
#define sov_bind bind
#define sov_listen listen
#define sov_accept accept
#define sov_connect connect
#define sov_send send
#define sov_recv recv
#define sov_shutdown shutdown
#define sov_close close
#define sov_setsockopt setsockopt
#define sov_getsockopt getsockopt
#define sov_getsockname getsockname
#define sov_getpeername getpeername
#else
#include "sov.h"
#endif

#define CHECK(what) do { if (!(what)) { fprintf(stderr, "%d: %s: %s\n", __LINE__, #what, strerror(errno)); exit(1); } } while (0)

enum { LONG = 300000 };
static unsigned char bytes[LONG], back[LONG];

static void receive(int s, size_t len) {
    size_t got = 0;
    while (got < len) {
        ssize_t n = sov_recv(s, back + got, len - got, 0);
        CHECK(n > 0);
        got += (size_t)n;
    }
}

static void serve(struct sockaddr_in at, const char *mode) {
    int type = 0, s, l = sov_socket(AF_INET, SOCK_VIA, 0);
    socklen_t len = sizeof at;
    struct sockaddr_in peer;
    CHECK(l >= 0);
    CHECK(sov_bind(l, (struct sockaddr *)&at, sizeof at) == 0);
    CHECK(sov_listen(l, 5) == 0);
    CHECK(sov_getsockname(l, (struct sockaddr *)&peer, &len) == 0 && peer.sin_port == at.sin_port);
    puts("listening");
    fflush(stdout);
    if (strcmp(mode, "before") == 0) {
        /* The client is connected, and has sent, before this end accepts. */
        char c;
        CHECK(read(0, &c, 1) == 1);
    }
    len = sizeof peer;
    s = sov_accept(l, (struct sockaddr *)&peer, &len);
    CHECK(s >= 0 && peer.sin_family == AF_INET && ntohs(peer.sin_port) >= 1024);
    len = sizeof type;
    CHECK(sov_getsockopt(s, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_VIA);
    if (strcmp(mode, "killed") == 0) {
        receive(s, 4);
        CHECK(sov_recv(s, back, 1, 0) == -1 && errno == ECONNRESET);
        CHECK(sov_send(s, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
        return;
    }
    if (strcmp(mode, "exit") == 0) {
        receive(s, LONG);
        CHECK(memcmp(back, bytes, LONG) == 0);
        CHECK(sov_recv(s, back, 1, 0) == 0);
        return;
    }
    receive(s, LONG);
    CHECK(memcmp(back, bytes, LONG) == 0);
    CHECK(sov_recv(s, back, 1, 0) == 0);
    /* The other direction is still open. */
    CHECK(sov_send(s, bytes, LONG, 0) == LONG);
    CHECK(sov_close(s) == 0 && sov_close(l) == 0);
}

static void ask(struct sockaddr_in at, const char *mode) {
    int on = 1, s = sov_socket(AF_INET, SOCK_VIA, 0);
    socklen_t len = sizeof at;
    struct sockaddr_in peer;
    size_t sent = 0, piece = 1;
    CHECK(s >= 0);
    CHECK(sov_send(s, "x", 1, MSG_NOSIGNAL) == -1 && errno == ENOTCONN);
    CHECK(sov_connect(s, (struct sockaddr *)&at, sizeof at) == 0);
    CHECK(sov_connect(s, (struct sockaddr *)&at, sizeof at) == -1 && errno == EISCONN);
    CHECK(sov_setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
    CHECK(sov_recv(s, back, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    if (strcmp(mode, "killed") == 0) {
        CHECK(sov_send(s, "last", 4, 0) == 4);
        raise(SIGKILL);
    }
    while (sent < LONG) {
        size_t n = piece < LONG - sent ? piece : LONG - sent;
        CHECK(sov_send(s, bytes + sent, n, 0) == (ssize_t)n);
        sent += n;
        piece = piece * 3 % 50021;
        if (sent > 10 && strcmp(mode, "before") == 0) {
            /* Tells that it has connected and sent. */
            puts("sent");
            fflush(stdout);
            mode = "";
        }
    }
    if (strcmp(mode, "exit") == 0)
        exit(0); /* without closing */
    CHECK(sov_getpeername(s, (struct sockaddr *)&peer, &len) == 0 && peer.sin_port == at.sin_port);
    CHECK(sov_shutdown(s, SHUT_WR) == 0);
    receive(s, LONG);
    CHECK(memcmp(back, bytes, LONG) == 0);
    CHECK(sov_recv(s, back, 1, 0) == 0);
    CHECK(sov_close(s) == 0);
}

int main(int argc, char **argv) {
    struct sockaddr_in at = { .sin_family = AF_INET };
    size_t i;
    CHECK(argc == 4);
    at.sin_port = htons((unsigned short)atoi(argv[2]));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (i = 0; i < LONG; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251);
    if (strcmp(argv[1], "serve") == 0)
        serve(at, argv[3]);
    else
        ask(at, argv[3]);
    return 0;
}
