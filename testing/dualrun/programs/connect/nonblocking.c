// A non-blocking connect, asked about with poll, SO_ERROR and a second connect, as hiredis does.
#include "dual.h"

static void server(void) {
    int listener = listening(AF_INET);
    tell_number(port_of(listener));
    int fd = OK(accept(listener, NULL, NULL));
    warm_up(fd);
    hear(fd, 5);
    send_text(fd, "world");
    recv_to_end(fd);
}

static void client(void) {
    struct sockaddr_storage address;
    int fd = OK(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    socklen_t length = loopback(AF_INET, await_number(), &address);
    int first = connect(fd, (struct sockaddr *)&address, length);
    say("first: %s", first == 0 || errno == EINPROGRESS ? "under way" : strerrorname_np(errno));
    say_poll("connected", fd, POLLOUT, -1);
    int error = -1;
    OK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error}));
    say("error %d", error);
    int again = connect(fd, (struct sockaddr *)&address, length);
    say("again: %s", again == 0 || errno == EISCONN ? "connected" : strerrorname_np(errno));
    TRY(connect(fd, (struct sockaddr *)&address, length));
    OK(fcntl(fd, F_SETFL, 0));
    warm_up(fd);
    TRY(connect(fd, (struct sockaddr *)&address, length));
    send_text(fd, "hello");
    hear(fd, 5);
}

SERVER_AND_CLIENT(server, client)
