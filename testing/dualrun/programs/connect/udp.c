// Datagrams are none of ours: they keep their limits.
#include "dual.h"

static void end(void) {
    struct sockaddr_storage address;
    int fd = OK(socket(AF_INET, SOCK_DGRAM, 0));
    socklen_t length = loopback(AF_INET, 0, &address);
    OK(bind(fd, (struct sockaddr *)&address, length));
    tell_number(port_of(fd));
    in_port_t port = await_number();
    length = loopback(AF_INET, port, &address);
    OK(connect(fd, (struct sockaddr *)&address, length));
    meet();
    TRY(send(fd, "one", 3, 0));
    TRY(send(fd, "", 0, 0));
    TRY(sendto(fd, "second", 6, 0, (struct sockaddr *)&address, length));
    TRY(send(fd, buf, 70000, 0));
    TRY(recv(fd, buf, 100, 0));
    TRY(recv(fd, buf, 100, 0));
    TRY(recv(fd, buf, 3, MSG_TRUNC));
    TRY(recv(fd, buf, 100, MSG_DONTWAIT));
    meet();
}

SERVER_AND_CLIENT(end, end)
