// A connection that is made without waiting, at a number that a file had which stdio closed.
#include "dual.h"

static int connects(in_port_t port) {
    FILE *file = fopen("/dev/null", "r");
    int number = fileno(file);
    fclose(file);
    int fd = OK(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    say("the same number: %d", fd == number);
    struct sockaddr_storage address;
    socklen_t length = loopback(AF_INET, port, &address);
    if (connect(fd, (struct sockaddr *)&address, length) < 0 && errno != EINPROGRESS) die(__LINE__, "connect");
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    OK(poll(&one, 1, -1));
    OK(fcntl(fd, F_SETFL, 0));
    return fd;
}

static void client(void) {
    int fd = connects(await_number());
    warm_up(fd);
    send_text(fd, "question");
    hear(fd, 6);
}

static void server(void) {
    int listener = listening(AF_INET);
    tell_number(port_of(listener));
    int fd = OK(accept(listener, NULL, NULL));
    warm_up(fd);
    hear(fd, 8);
    send_text(fd, "answer");
}

SERVER_AND_CLIENT(server, client)
