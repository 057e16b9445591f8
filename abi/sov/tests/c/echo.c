/*
 * A server and a client of type SOCK_VIA: with the calls of sov.h, or, built with -DPRELOADED, with those of POSIX under libsovia.so.
 *
 * echo serve PORT MODE     waits, accepts one connection and answers; says "listening" first
 * echo ask PORT MODE       connects, asks and checks
 */
#define _GNU_SOURCE /* accept4, strcasestr */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef PRELOADED
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
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
static unsigned char bytes[LONG], back[LONG + 1];

static void receive(int s, size_t len) {
    size_t got = 0;
    while (got < len) {
        ssize_t n = sov_recv(s, back + got, len - got, 0);
        CHECK(n > 0);
        got += (size_t)n;
    }
}

#ifdef PRELOADED
/* Answers as it comes, with what the set says; with EPOLLET it is said once. */
static void serve_polled(int l, unsigned edge) {
    struct pollfd waiting = { .fd = l, .events = POLLIN };
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | edge };
    size_t got = 0, sent = 0;
    int s, ended = 0, set = epoll_create1(0);
    ssize_t n;
    CHECK(fcntl(l, F_SETFL, O_NONBLOCK) == 0);
    CHECK(poll(&waiting, 1, -1) == 1 && waiting.revents == POLLIN);
    s = accept4(l, NULL, NULL, SOCK_NONBLOCK);
    CHECK(s >= 0);
    CHECK(accept(l, NULL, NULL) == -1 && errno == EAGAIN);
    CHECK(poll(&waiting, 1, 0) == 0);
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, s, &event) == 0);
    while (!ended || sent < got) {
        if (!edge) {
            event.events = (ended ? 0 : EPOLLIN) | (sent < got ? EPOLLOUT : 0);
            CHECK(epoll_ctl(set, EPOLL_CTL_MOD, s, &event) == 0);
        }
        CHECK(epoll_wait(set, &event, 1, 20000) == 1);
        do {
            n = recv(s, back + got, sizeof back - got, 0);
            CHECK(n >= 0 || errno == EAGAIN);
            got += n > 0 ? (size_t)n : 0;
            ended |= n == 0;
        } while (edge && n > 0);
        do {
            n = sent < got ? send(s, back + sent, got - sent, 0) : 0;
            CHECK(n >= 0 || errno == EAGAIN);
            sent += n > 0 ? (size_t)n : 0;
        } while (edge && n > 0);
    }
    CHECK(got == LONG && memcmp(back, bytes, LONG) == 0);
    CHECK(close(s) == 0 && close(l) == 0);
}

/* Sends and receives at once. */
static void ask_polled(int s) {
    struct pollfd both = { .fd = s, .events = POLLIN | POLLOUT };
    size_t got = 0, sent = 0;
    fd_set readable;
    ssize_t n = 1;
    CHECK(fcntl(s, F_SETFL, O_NONBLOCK) == 0);
    while (n != 0) {
        CHECK(poll(&both, 1, 20000) == 1);
        if (sent < LONG && both.revents & POLLOUT) {
            n = send(s, bytes + sent, LONG - sent < 70001 ? LONG - sent : 70001, 0);
            CHECK(n > 0 || errno == EAGAIN);
            sent += n > 0 ? (size_t)n : 0;
            if (sent == LONG) {
                CHECK(shutdown(s, SHUT_WR) == 0);
                both.events = POLLIN;
            }
        }
        n = recv(s, back + got, sizeof back - got, 0);
        CHECK(n >= 0 || errno == EAGAIN);
        got += n > 0 ? (size_t)n : 0;
    }
    CHECK(got == LONG && memcmp(back, bytes, LONG) == 0);
    /* The end stays readable. */
    FD_ZERO(&readable);
    FD_SET(s, &readable);
    CHECK(select(s + 1, &readable, NULL, NULL, NULL) == 1 && FD_ISSET(s, &readable));
    CHECK(close(s) == 0);
}
#endif

#ifndef PRELOADED
/* A child, which can only close its copies. */
static void have_child(int s) {
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(sov_send(s, "x", 1, MSG_NOSIGNAL) == -1 && errno == ENOTCONN);
        CHECK(sov_accept(s, NULL, NULL) == -1 && errno == ENOTCONN);
        CHECK(sov_close(s) == 0);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

static void serve(struct sockaddr_in at, const char *mode) {
    int type = 0, s, l = sov_socket(AF_INET, SOCK_VIA, 0);
    socklen_t len = sizeof at;
    struct sockaddr_in peer;
    CHECK(l >= 0);
    CHECK(sov_bind(l, (struct sockaddr *)&at, sizeof at) == 0);
    CHECK(sov_listen(l, 5) == 0);
    CHECK(sov_getsockname(l, (struct sockaddr *)&peer, &len) == 0 && peer.sin_port == at.sin_port);
    CHECK(sov_getsockname(l, (struct sockaddr *)&peer, NULL) == -1 && errno == EFAULT);
    CHECK(sov_getsockname(l, NULL, &len) == -1 && errno == EFAULT);
    CHECK(sov_accept(l, (struct sockaddr *)&peer, NULL) == -1 && errno == EFAULT);
    puts("listening");
    fflush(stdout);
#ifdef PRELOADED
    if (strcmp(mode, "polled") == 0 || strcmp(mode, "edge") == 0) {
        serve_polled(l, strcmp(mode, "edge") == 0 ? EPOLLET : 0);
        return;
    }
#endif
    if (strcmp(mode, "before") == 0) {
        /* The client is connected, and has sent, before this end accepts. */
        char c;
        CHECK(read(0, &c, 1) == 1);
    }
#ifndef PRELOADED
    if (strcmp(mode, "forked") == 0)
        have_child(l);
#endif
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
    if (strcmp(mode, "timed") == 0) {
        receive(s, 1);
        return;
    }
    if (strcmp(mode, "linger") == 0) {
        CHECK(sov_recv(s, back, 1, 0) == -1 && errno == ECONNRESET);
        return;
    }
    if (strcasestr(mode, "exit") != NULL) {
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
    CHECK(sov_send(s, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    CHECK(sov_connect(s, (struct sockaddr *)&at, (socklen_t)-1) == -1 && errno == EINVAL);
    CHECK(sov_connect(s, (struct sockaddr *)&at, sizeof at) == 0);
    CHECK(sov_connect(s, (struct sockaddr *)&at, sizeof at) == -1 && errno == EISCONN);
    /* What is held to be combined is what such an end would lose. */
    if (mode[0] != '_' && mode[0] != 'q')
        CHECK(sov_setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
    CHECK(sov_recv(s, back, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    CHECK(sov_recv(s, back, 1, MSG_OOB) == -1 && errno == EINVAL);
    CHECK(sov_recv(s, back, 1, MSG_ERRQUEUE) == -1 && errno == EAGAIN);
    CHECK(sov_recv(s, NULL, 1, MSG_TRUNC | MSG_DONTWAIT) == -1 && errno == EAGAIN);
    CHECK(sov_send(s, (void *)1, 5, 0) == -1 && errno == EFAULT);
    len = (socklen_t)-1;
    CHECK(sov_getsockopt(s, SOL_SOCKET, SO_TYPE, &on, &len) == -1 && errno == EINVAL);
    CHECK(sov_getsockname(s, (struct sockaddr *)&peer, &len) == -1 && errno == EINVAL);
    len = sizeof at;
#ifndef PRELOADED
    CHECK(sov_send(s, "x", 1, MSG_OOB) == -1 && errno == EOPNOTSUPP);
#endif
    CHECK(sov_shutdown(s, 77) == -1 && errno == EINVAL);
    CHECK(sov_shutdown(s, -1) == -1 && errno == EINVAL);
#ifdef PRELOADED
    if (strcmp(mode, "polled") == 0 || strcmp(mode, "edge") == 0) {
        ask_polled(s);
        return;
    }
#endif
    if (strcmp(mode, "timed") == 0) {
        /* The server says nothing: only the time ends the call. */
        struct timeval limit = { .tv_usec = 20000 }, told = { 0, 0 };
        CHECK(sov_setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, 3) == -1 && errno == EINVAL);
        CHECK(sov_setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
        len = sizeof told;
        CHECK(sov_getsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &told, &len) == 0 && told.tv_usec == 20000);
        CHECK(sov_recv(s, back, 1, 0) == -1 && errno == EAGAIN);
        CHECK(sov_send(s, "x", 1, 0) == 1);
        CHECK(sov_close(s) == 0);
        return;
    }
    if (strcmp(mode, "linger") == 0) {
        struct linger none = { .l_onoff = 1, .l_linger = 0 };
        CHECK(sov_setsockopt(s, SOL_SOCKET, SO_LINGER, &none, sizeof none) == 0);
        CHECK(sov_close(s) == 0);
        return;
    }
    if (strcmp(mode, "killed") == 0) {
        CHECK(sov_send(s, "last", 4, 0) == 4);
        raise(SIGKILL);
    }
#ifndef PRELOADED
    if (strcmp(mode, "forked") == 0)
        have_child(s);
#endif
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
    if (strcmp(mode, "_exit") == 0)
        _exit(0);
    if (strcmp(mode, "_Exit") == 0)
        _Exit(0);
    if (strcmp(mode, "quick_exit") == 0)
        quick_exit(0);
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
