// A server that does nothing wrong, and a friend of it that sees whether it still serves. Who connects says by the first byte how it is
// to be served. Commands come on standard input, answers go to standard output.
//
//   victim serve          PORT; k: one that keeps a broken connection lets it go; q: ends, and says how many services had not
//   victim friend PORT    g: exchanges on all of its connections, and says "ok"
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loopback.h"

enum { ROOM = 32 << 10, MOST = 4096 };

static void die(int line, const char *what) {
    fprintf(stderr, "victim: line %d: %s: %s\n", line, what, strerror(errno));
    _exit(3);
}
#define OK(call)                                                                                                       \
    ({                                                                                                                 \
        long result_ = (long)(call);                                                                                   \
        if (result_ == -1) die(__LINE__, #call);                                                                       \
        result_;                                                                                                       \
    })

// An error that a connection may bring, whatever the other end does; all others are ours.
static void must_be_the_connections(const char *call) {
    switch (errno) {
    case ECONNRESET:
    case EPIPE:
    case ENOTCONN:
    case ETIMEDOUT: return;
    default: die(0, call);
    }
}

static int services, kept_pipe[2];
static void began(void) { __atomic_fetch_add(&services, 1, __ATOMIC_SEQ_CST); }
static void ended(void) { __atomic_fetch_sub(&services, 1, __ATOMIC_SEQ_CST); }

// ---- threads

static void echo(int fd) {
    char buffer[ROOM];
    for (;;) {
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got == 0) return;
        if (got < 0) return must_be_the_connections("recv");
        for (ssize_t put = 0; put < got;) {
            ssize_t n = send(fd, buffer + put, got - put, MSG_NOSIGNAL);
            if (n < 0) return must_be_the_connections("send");
            put += n;
        }
    }
}

static void take(int fd) {
    char buffer[ROOM];
    for (unsigned turn = 0;; turn++) {
        struct iovec parts[2] = {{buffer, 100}, {buffer + 100, ROOM - 100}};
        ssize_t got;
        switch (turn % 4) {
        case 0: got = recv(fd, buffer, ROOM, MSG_TRUNC); break;
        case 1: got = recv(fd, buffer, 10, MSG_PEEK); break;
        case 2: got = readv(fd, parts, 2); break;
        default: got = recv(fd, buffer, 300, MSG_DONTWAIT);
        }
        if (got == 0) return;
        if (got < 0 && errno == EAGAIN) continue;
        if (got < 0) return must_be_the_connections("recv");
    }
}

static void give(int fd) {
    static char buffer[ROOM];
    while (send(fd, buffer, sizeof buffer, MSG_NOSIGNAL) >= 0) continue;
    must_be_the_connections("send");
}

// Gives the socket to itself, for which it must go back to TCP.
static void give_away(int fd) {
    char byte = 0, control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    int pair[2];
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    OK(sendmsg(pair[0], &message, 0));
    close(pair[0]), close(pair[1]);
}

static void *serve_in_thread(void *with) {
    int fd = (long)with >> 8;
    switch ((long)with & 0xff) {
    case 'R': take(fd); break;
    case 'W': give(fd); break;
    case 'A': {
        char byte;
        for (int n = 0; n < 40 && recv(fd, &byte, 1, 0) == 1; n++)
            if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1) break;
        give_away(fd);
        echo(fd);
        break;
    }
    case 'K': {
        // Keeps a broken socket until it hears of it.
        echo(fd);
        char byte;
        OK(read(kept_pipe[0], &byte, 1));
        break;
    }
    default: echo(fd);
    }
    close(fd);
    ended();
    return NULL;
}

static void *serve_in_child(void *with) {
    int fd = (long)with;
    pid_t child = OK(fork());
    if (child == 0) {
        echo(fd);
        _exit(0);
    }
    // The parent has it too for a while, and uses it.
    char byte;
    if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno != EAGAIN) must_be_the_connections("recv");
    int how;
    while (waitpid(child, &how, 0) < 0) continue;
    if (how != 0) fprintf(stderr, "victim: a child ended with %x\n", how), _exit(4);
    close(fd);
    ended();
    return NULL;
}

// ---- loops

struct pending {
    size_t len, put;
    char bytes[ROOM];
};
static struct pending *pendings[MOST];

// 0 when it is over; else what to wait for.
static int echo_some(int fd) {
    struct pending *p = pendings[fd];
    for (int n = 0; n < 16; n++) {
        if (p->put == p->len) {
            ssize_t got = recv(fd, p->bytes, sizeof p->bytes, 0);
            if (got == 0) return 0;
            if (got < 0 && errno == EAGAIN) return EPOLLIN;
            if (got < 0) return must_be_the_connections("recv"), 0;
            p->len = got, p->put = 0;
        }
        ssize_t put = send(fd, p->bytes + p->put, p->len - p->put, MSG_NOSIGNAL);
        if (put < 0 && errno == EAGAIN) return EPOLLOUT;
        if (put < 0) return must_be_the_connections("send"), 0;
        p->put += put;
    }
    return EPOLLIN | EPOLLOUT;
}

// A child that was forked meanwhile may have the socket, so closing it does not take it out of a set.
static void over(int set, int fd, int is_edge) {
    if (set >= 0) OK(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    free(pendings[fd]);
    pendings[fd] = NULL;
    close(fd);
    if (!is_edge) ended();
}

static int level_set, edge_set, poll_pipe[2];

static void *level(void *with) {
    (void)with;
    for (;;) {
        struct epoll_event events[8];
        int found = OK(epoll_wait(level_set, events, 8, -1));
        for (int i = 0; i < found; i++) {
            int fd = events[i].data.fd, wanted = echo_some(fd);
            if (wanted == 0) over(level_set, fd, 0);
            else OK(epoll_ctl(level_set, EPOLL_CTL_MOD, fd, &(struct epoll_event){wanted, {.fd = fd}}));
        }
    }
    return NULL;
}

static void *edge(void *with) {
    (void)with;
    for (;;) {
        struct epoll_event events[8];
        int found = OK(epoll_wait(edge_set, events, 8, -1));
        for (int i = 0; i < found; i++) {
            int fd = events[i].data.fd, wanted;
            while ((wanted = echo_some(fd)) == (EPOLLIN | EPOLLOUT)) continue;
            if (wanted == 0) over(edge_set, fd, 1);
        }
    }
    return NULL;
}

static void *poll_all(void *with) {
    static struct pollfd fds[MOST];
    int count = 1;
    (void)with;
    fds[0] = (struct pollfd){poll_pipe[0], POLLIN, 0};
    for (;;) {
        OK(poll(fds, count, -1));
        for (int i = count - 1; i > 0; i--) {
            if (fds[i].revents == 0) continue;
            int wanted = echo_some(fds[i].fd);
            fds[i].events = (wanted & EPOLLIN ? POLLIN : 0) | (wanted & EPOLLOUT ? POLLOUT : 0);
            if (wanted == 0) over(-1, fds[i].fd, 0), fds[i] = fds[--count];
        }
        if (fds[0].revents) {
            int fd;
            if (OK(read(poll_pipe[0], &fd, sizeof fd)) == sizeof fd) fds[count++] = (struct pollfd){fd, POLLIN, 0};
        }
    }
    return NULL;
}

static void start(void *(*service)(void *), void *with) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, service, with)) die(__LINE__, "pthread_create");
}

static void *accept_all(void *with) {
    for (;;) {
        int fd = accept((long)with, NULL, NULL);
        if (fd < 0 && (errno == ECONNABORTED || errno == EMFILE)) continue;
        OK(fd);
        char how = 0;
        if (fd >= MOST || recv(fd, &how, 1, 0) != 1) {
            close(fd);
            continue;
        }
        // An enemy's edge-triggered connection may not be told that he has gone: see docs/limitations.md.
        if (how != 'T') began();
        if (strchr("ETP", how)) {
            OK(fcntl(fd, F_SETFL, O_NONBLOCK));
            pendings[fd] = malloc(sizeof *pendings[fd]);
            pendings[fd]->len = pendings[fd]->put = 0;
        }
        switch (how) {
        case 'E': OK(epoll_ctl(level_set, EPOLL_CTL_ADD, fd, &(struct epoll_event){EPOLLIN, {.fd = fd}})); break;
        case 'T':
            OK(epoll_ctl(edge_set, EPOLL_CTL_ADD, fd, &(struct epoll_event){EPOLLIN | EPOLLOUT | EPOLLET, {.fd = fd}}));
            break;
        case 'P': OK(write(poll_pipe[1], &fd, sizeof fd)); break;
        case 'F': start(serve_in_child, (void *)(long)fd); break;
        default: start(serve_in_thread, (void *)((long)fd << 8 | (unsigned char)how));
        }
    }
    return NULL;
}

static int serve(void) {
    struct sockaddr_in address;
    long listener = listen_on_loopback(&address, 128);
    level_set = OK(epoll_create1(EPOLL_CLOEXEC));
    edge_set = OK(epoll_create1(EPOLL_CLOEXEC));
    OK(pipe(poll_pipe)), OK(pipe(kept_pipe));
    start(level, NULL), start(edge, NULL), start(poll_all, NULL), start(accept_all, (void *)listener);
    printf("%d\n", ntohs(address.sin_port));
    char command;
    while (OK(read(0, &command, 1)) == 1 && command != 'q')
        if (command == 'k') OK(write(kept_pipe[1], &command, 1));
    for (int n = 0; n < 2000 && __atomic_load_n(&services, __ATOMIC_SEQ_CST) > 0; n++) usleep(10000);
    printf("left %d\n", __atomic_load_n(&services, __ATOMIC_SEQ_CST));
    return 0;
}

static int be_friend(int port) {
    static const char services[] = "EETTPPBBF";
    int fds[sizeof services - 1];
    uint64_t random = 1, place = 0;
    for (unsigned i = 0; i < sizeof services - 1; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
        fds[i] = connect_to(&address);
        OK(send(fds[i], &services[i], 1, 0));
    }
    char command;
    while (OK(read(0, &command, 1)) == 1) {
        for (int n = 0; n < 40; n++) {
            for (unsigned i = 0; i < sizeof services - 1; i++) {
                unsigned char out[3000], in[3000];
                random = random * 6364136223846793005u + 1442695040888963407u;
                size_t len = 1 + (random >> 33) % (n % 8 ? 100 : sizeof out);
                for (size_t at = 0; at < len; at++) out[at] = (place++ * 0x9e3779b97f4a7c15u) >> 53;
                if (OK(send(fds[i], out, len, 0)) != (ssize_t)len) die(__LINE__, "a short send");
                if (OK(recv(fds[i], in, len, MSG_WAITALL)) != (ssize_t)len) die(__LINE__, "a short receive");
                if (memcmp(out, in, len)) die(__LINE__, "wrong bytes");
            }
        }
        printf("ok\n");
    }
    return 0;
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && !strcmp(argv[1], "serve")) return serve();
    if (argc == 3 && !strcmp(argv[1], "friend")) return be_friend(atoi(argv[2]));
    return 2;
}
