// An edge-triggered reader that takes a short read for the last: what it did not get then is told by an edge. The last of what comes over TCP is short
// like that, and more may stand in the ring behind it.
#include "epoll.h"

enum { CONNECTIONS = 10, BYTES = 6 << 20 };

static void read_until_short(int fd) {
    int set = set_of(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    struct epoll_event event = {0};
    size_t got = 0;
    ssize_t n = 1;
    while (n != 0) {
        OK(epoll_wait(set, &event, 1, -1));
        if (!(event.events & EPOLLIN)) continue;
        do {
            n = recv(fd, buf, 20000, MSG_DONTWAIT);
            if (n < 0 && errno != EAGAIN) die(__LINE__, "recv");
            if (n > 0 && !as_filled(buf, n, got)) die(__LINE__, "other bytes than were sent");
            if (n > 0) got += n;
        } while (n == 20000 || (n > 0 && event.events & EPOLLRDHUP));
    }
    say("%zu bytes", got);
    OK(close(set));
}

static void server(void) {
    int listener = listening(AF_INET);
    tell_number(port_of(listener));
    for (int i = 0; i < CONNECTIONS; i++) {
        int fd = OK(accept(listener, NULL, NULL));
        warm_up(fd);
        read_until_short(fd);
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
