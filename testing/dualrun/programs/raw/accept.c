// syscall() for the making of a connection, as libuv's accept4: socket, bind, listen, connect, accept4, getsockname.
#include "dual.h"
#include <sys/syscall.h>

static void server(void) {
    struct sockaddr_storage address;
    int listener = OK(syscall(SYS_socket, (long)AF_INET, (long)SOCK_STREAM, 0L));
    socklen_t length = loopback(AF_INET, 0, &address);
    TRY(syscall(SYS_bind, listener, &address, (long)length));
    TRY(syscall(SYS_listen, listener, 5L));
    length = sizeof address;
    TRY(syscall(SYS_getsockname, listener, &address, &length));
    tell_number(((struct sockaddr_in *)&address)->sin_port);
    int fd = OK(syscall(SYS_accept4, listener, NULL, NULL, (long)SOCK_CLOEXEC));
    warm_up(fd);
    hear(fd, 5);
    send_text(fd, "world");
    recv_to_end(fd);
}

static void client(void) {
    struct sockaddr_storage address;
    int fd = OK(syscall(SYS_socket, (long)AF_INET, (long)SOCK_STREAM, 0L));
    socklen_t length = loopback(AF_INET, await_number(), &address);
    TRY(syscall(SYS_connect, fd, &address, (long)length));
    warm_up(fd);
    send_text(fd, "hello");
    hear(fd, 5);
}

SERVER_AND_CLIENT(server, client)
