// connect to AF_UNSPEC dissolves a connection, and the socket can be used again.
#include "dual.h"

static void server(void) {
    int listener = listening(AF_INET);
    tell_number(port_of(listener));
    int fd = OK(accept(listener, NULL, NULL));
    warm_up(fd);
    hear(fd, 5);
    tell();
    TRY(recv(fd, buf, 1, 0));
    fd = OK(accept(listener, NULL, NULL));
    hear(fd, 6);
    send_text(fd, "again");
}

static void client(void) {
    in_port_t port = await_number();
    int fd = connect_port(AF_INET, port);
    warm_up(fd);
    send_text(fd, "first");
    await();
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    TRY(connect(fd, &none, sizeof none));
    TRY(getpeername(fd, (void *)buf, &(socklen_t){16}));
    TRY(send(fd, "x", 1, MSG_NOSIGNAL));
    struct sockaddr_storage address;
    socklen_t length = loopback(AF_INET, port, &address);
    TRY(connect(fd, (struct sockaddr *)&address, length));
    send_text(fd, "second");
    hear(fd, 5);
}

SERVER_AND_CLIENT(server, client)
