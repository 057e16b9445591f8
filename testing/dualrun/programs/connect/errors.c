// What connect, bind, listen, accept and socket refuse.
#include "dual.h"

static void end(void) {
    struct sockaddr_storage address;
    TRY(socket(AF_INET, 99, 0));
    TRY(socket(99, SOCK_STREAM, 0));
    TRY(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
    int fd = OK(socket(AF_INET, SOCK_STREAM, 0));
    socklen_t length = loopback(AF_INET, htons(1), &address);
    TRY(connect(fd, (struct sockaddr *)&address, 3));
    TRY(connect(fd, (void *)16, length));
    address.ss_family = AF_UNIX;
    TRY(connect(fd, (struct sockaddr *)&address, length));
    TRY(accept(fd, NULL, NULL));
    TRY(accept4(fd, NULL, NULL, 0x1000));
    int listener = listening(AF_INET);
    length = loopback(AF_INET, port_of(listener), &address);
    TRY(bind(fd, (struct sockaddr *)&address, length));
    TRY(bind(listener, (struct sockaddr *)&address, length));
    TRY(connect(listener, (struct sockaddr *)&address, length));
    ((struct sockaddr_in *)&address)->sin_addr.s_addr = inet_addr("192.0.2.1");
    TRY(bind(fd, (struct sockaddr *)&address, length));
    OK(fcntl(listener, F_SETFL, O_NONBLOCK));
    TRY(accept(listener, NULL, NULL));
    TRY(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
    TRY(listen(listener, 5)); // again is allowed
    TRY(listen(listener, -1));
    TRY(socketpair(AF_INET, SOCK_STREAM, 0, (int *)buf));
}

SERVER_AND_CLIENT(end, end)
