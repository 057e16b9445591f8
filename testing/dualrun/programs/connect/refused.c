// Nobody listens: the error, blocking, non-blocking and asked for, and what the socket is good for afterwards.
#include "dual.h"

static void end(void) {
    struct sockaddr_storage address;
    int nobody = bound(AF_INET); // bound, and not listening
    socklen_t length = loopback(AF_INET, port_of(nobody), &address);
    int fd = OK(socket(AF_INET, SOCK_STREAM, 0));
    TRY(connect(fd, (struct sockaddr *)&address, length));
    TRY(send(fd, "x", 1, MSG_NOSIGNAL));
    OK(close(fd));
    fd = OK(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    int first = connect(fd, (struct sockaddr *)&address, length);
    say("first: %d", first == -1 && (errno == EINPROGRESS || errno == ECONNREFUSED));
    say_poll("refused", fd, POLLIN | POLLOUT, -1);
    int error;
    OK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error}));
    say("%s", strerrorname_np(error));
    OK(close(fd));
    // The same socket may try again elsewhere.
    int listener = listening(AF_INET);
    fd = OK(socket(AF_INET, SOCK_STREAM, 0));
    TRY(connect(fd, (struct sockaddr *)&address, length));
    length = loopback(AF_INET, port_of(listener), &address);
    TRY(connect(fd, (struct sockaddr *)&address, length));
    int other = OK(accept(listener, NULL, NULL));
    send_text(fd, "within one process");
    hear(other, 18);
}

SERVER_AND_CLIENT(end, end)
