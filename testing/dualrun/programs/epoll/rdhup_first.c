// Who waits for the end alone, before the peer has sent anything by memory: in a set, an edge-triggered one, and with poll.
#include "epoll.h"
#include <poll.h>

enum { TIMES = 2000, BYTES = 5000 };

static void wait_in_set(int fd, unsigned wanted) {
    int set = set_of(fd, wanted);
    tell();
    say_set("an end", set, 10000);
    OK(close(set));
}

static void wait_with_poll(int fd, short wanted) {
    struct pollfd it = {.fd = fd, .events = wanted};
    tell();
    say("poll: %d, %s", poll(&it, 1, 10000), events(it.revents));
}

static void server(void) {
    int listener = listening(AF_INET);
    tell_number(port_of(listener));
    for (int i = 0; i < 4; i++) {
        int fd = OK(accept(listener, NULL, NULL));
        // It leaves TCP by what goes the other way.
        hear(fd, 4);
        for (int n = 0; n < TIMES; n++) send_filled(fd, BYTES);
        switch (i) {
            case 0: wait_in_set(fd, EPOLLRDHUP); break;
            case 1: wait_in_set(fd, EPOLLRDHUP | EPOLLET); break;
            case 2: wait_with_poll(fd, POLLRDHUP); break;
            default:
                OK(shutdown(fd, SHUT_WR));
                wait_with_poll(fd, 0);
        }
        OK(close(fd));
    }
}

static void client(void) {
    in_port_t port = await_number();
    for (int i = 0; i < 4; i++) {
        int fd = connect_port(AF_INET, port);
        send_text(fd, "more");
        for (int n = 0; n < TIMES; n++) recv_filled(fd, BYTES);
        await();
        OK(shutdown(fd, SHUT_WR));
        recv_to_end(fd);
        OK(close(fd));
    }
}

SERVER_AND_CLIENT(server, client)
