// A listener that tells of a connection when its first bytes are there (TCP_DEFER_ACCEPT).
#include "dual.h"

static void server(void) {
    int listener = bound(AF_INET);
    int seconds = 5;
    TRY(setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds));
    OK(listen(listener, 8));
    tell_number(port_of(listener));
    for (int turn = 0; turn < 2; turn++) {
        say_poll("somebody", listener, POLLIN, -1);
        int fd = OK(accept(listener, NULL, NULL));
        TRY(recv(fd, buf, 5, MSG_DONTWAIT));
        warm_up(fd);
        send_text(fd, "answer");
        recv_to_end(fd);
        close(fd);
    }
}

static void client(void) {
    in_port_t port = await_number();
    for (int turn = 0; turn < 2; turn++) {
        int fd = connect_port(AF_INET, port);
        OK(send(fd, "hello", 5, 0));
        warm_up(fd);
        hear(fd, 6);
        send_filled(fd, 300000);
        OK(close(fd));
    }
}

SERVER_AND_CLIENT(server, client)
