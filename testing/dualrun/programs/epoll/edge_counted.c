// An edge-triggered reader that does not read until EAGAIN: it asks how much there is (FIONREAD), takes that, and waits for the next edge, as nginx
// does. Of what each connection carries the first bytes come over TCP, and others stand in the ring behind them by then.
#include "epoll.h"

enum { CONNECTIONS = 10, BYTES = 6 << 20 };

static size_t got;

static void take(int fd, size_t most) {
    // What a small buffer holds; the other end sends meanwhile.
    ssize_t n = recv(fd, buf, most < 4096 ? most : 4096, MSG_DONTWAIT);
    if (n <= 0) die(__LINE__, "there was more");
    if (!as_filled(buf, n, got)) die(__LINE__, "other bytes than were sent");
    got += n;
}

static void read_counted(int fd) {
    int set = set_of(fd, EPOLLIN | EPOLLRDHUP | EPOLLET);
    struct epoll_event event = {0};
    do {
        OK(epoll_wait(set, &event, 1, -1));
        int there = 0;
        OK(ioctl(fd, FIONREAD, &there));
        for (size_t end = got + there; got < end;) take(fd, end - got);
    } while (!(event.events & EPOLLRDHUP));
    OK(close(set));
}

static void server(void) {
    int listener = listening(AF_INET);
    tell_number(port_of(listener));
    for (int i = 0; i < CONNECTIONS; i++) {
        int fd = OK(accept(listener, NULL, NULL));
        warm_up(fd);
        got = 0;
        read_counted(fd);
        say("%zu bytes", got);
        OK(close(fd));
    }
}

static void client(void) {
    in_port_t port = await_number();
    for (int i = 0; i < CONNECTIONS; i++) {
        int fd = connect_port(AF_INET, port);
        warm_up(fd);
        send_filled(fd, BYTES);
        OK(shutdown(fd, SHUT_WR));
        recv_to_end(fd);
        OK(close(fd));
    }
}

SERVER_AND_CLIENT(server, client)
