// What shutdown, send and recv say of a socket that was never connected.
#include "dual.h"

static void end(void) {
    int fd = OK(socket(AF_INET, SOCK_STREAM, 0));
    TRY(shutdown(fd, SHUT_WR));
    TRY(shutdown(fd, 7));
    TRY(send(fd, "x", 1, MSG_NOSIGNAL));
    TRY(recv(fd, buf, 1, 0));
    TRY(read(fd, buf, 1));
    say_poll("fresh", fd, POLLIN | POLLOUT, 0);
    TRY(getpeername(fd, (void *)buf, &(socklen_t){16}));
    int listener = listening(AF_INET);
    TRY(recv(listener, buf, 1, 0));
    TRY(send(listener, "x", 1, MSG_NOSIGNAL));
    TRY(shutdown(listener, SHUT_RDWR));
    TRY(accept(listener, NULL, NULL));
}

SERVER_AND_CLIENT(end, end)
