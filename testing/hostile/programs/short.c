// Short connections, both ends in one thread: one after the other, 64 bytes there and back on each. Before and after those that count it asks for its
// parent, which nothing else here does.
//
//   short blocking|epoll
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "loopback.h"

#define OK(call) ({ long ok_ = (call); if (ok_ < 0) { perror(#call); exit(1); } ok_; })

enum { BEFORE = 3, COUNTED = 10, MESSAGE = 64 };
static char buffer[MESSAGE];

static void hears(int fd) {
    if (OK(recv(fd, buffer, MESSAGE, 0)) != MESSAGE) exit(1);
}

static void blocking(const struct sockaddr_in *address, int listener) {
    int client = connect_to(address);
    OK(send(client, buffer, MESSAGE, 0));
    int server = OK(accept(listener, NULL, NULL));
    hears(server);
    OK(send(server, buffer, MESSAGE, 0));
    hears(client);
    OK(close(client));
    if (OK(recv(server, buffer, MESSAGE, 0)) != 0) exit(1);
    OK(close(server));
}

static int sets[2];

static void has(int set, int operation, int fd, unsigned events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    OK(epoll_ctl(set, operation, fd, &event));
}

static void is_told(int set, int fd) {
    struct epoll_event event;
    if (OK(epoll_wait(set, &event, 1, -1)) != 1 || event.data.fd != fd) exit(1);
}

static void by_epoll(const struct sockaddr_in *address, int listener) {
    int one = 1, error;
    socklen_t len = sizeof error;
    int client = OK(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    OK(setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    if (connect(client, (const struct sockaddr *)address, sizeof *address) == 0 || errno != EINPROGRESS) exit(1);
    has(sets[0], EPOLL_CTL_ADD, client, EPOLLOUT);
    is_told(sets[0], client);
    OK(getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &len));
    OK(send(client, buffer, MESSAGE, 0));
    has(sets[0], EPOLL_CTL_MOD, client, EPOLLIN);
    is_told(sets[1], listener);
    int server = OK(accept4(listener, NULL, NULL, SOCK_NONBLOCK));
    OK(setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    has(sets[1], EPOLL_CTL_ADD, server, EPOLLIN | EPOLLRDHUP);
    is_told(sets[1], server);
    hears(server);
    OK(send(server, buffer, MESSAGE, 0));
    is_told(sets[0], client);
    hears(client);
    OK(close(client));
    is_told(sets[1], server);
    OK(close(server));
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    int waits = strcmp(argv[1], "blocking") == 0;
    struct sockaddr_in address;
    int listener = listen_on_loopback(&address, 1);
    for (int at = 0; at < 2; at++) sets[at] = OK(epoll_create1(0));
    if (!waits) has(sets[1], EPOLL_CTL_ADD, listener, EPOLLIN);
    for (int n = 0; n < BEFORE + COUNTED; n++) {
        if (n == BEFORE) getppid();
        (waits ? blocking : by_epoll)(&address, listener);
    }
    getppid();
    return 0;
}
