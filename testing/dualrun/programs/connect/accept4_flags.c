// The flags of accept4, and that O_NONBLOCK is not inherited from the listener.
#include "dual.h"

static void flags(const char *what, int fd) {
    say("%s: nonblocking %d, close on exec %ld", what, (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0, OK(fcntl(fd, F_GETFD)));
    warm_up(fd);
    send_text(fd, "hello");
    hear(fd, 5);
}

static void server(void) {
    int listener = listening(AF_INET);
    OK(fcntl(listener, F_SETFL, O_NONBLOCK));
    tell_number(port_of(listener));
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    OK(poll(&ready, 1, -1));
    int fd = OK(accept(listener, (struct sockaddr *)&peer, &length));
    say("from %s, %u bytes", inet_ntoa(peer.sin_addr), (unsigned)length);
    flags("accept", fd);
    OK(poll(&ready, 1, -1));
    fd = OK(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    flags("SOCK_CLOEXEC", fd);
    OK(poll(&ready, 1, -1));
    length = 4;
    fd = OK(accept4(listener, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK));
    say("needs %u bytes", (unsigned)length);
    say("nonblocking %d", (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    TRY(recv(fd, buf, 1, 0));
    meet();
    settle(fd, 4);
    hear(fd, 4);
    send_text(fd, "ok");
}

static void client(void) {
    in_port_t port = await_number();
    for (int i = 0; i < 2; i++) {
        int fd = connect_port(AF_INET, port);
        warm_up(fd);
        hear(fd, 5);
        send_text(fd, "world");
    }
    int fd = connect_port(AF_INET, port);
    meet();
    send_text(fd, "last");
    hear(fd, 2);
}

SERVER_AND_CLIENT(server, client)
