// A client that connects by its first bytes: TCP_FASTOPEN_CONNECT, and sendto and sendmsg with MSG_FASTOPEN.
#include "dual.h"

static int ways = 3;

static void server(void) {
    int listener = bound(AF_INET);
    int queue = 16;
    TRY(setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN, &queue, sizeof queue));
    OK(listen(listener, 8));
    tell_number(port_of(listener));
    for (int way = 0; way < ways; way++) {
        int fd = OK(accept(listener, NULL, NULL));
        hear(fd, 5);
        warm_up(fd);
        send_text(fd, "answer");
        recv_to_end(fd);
        close(fd);
    }
}

static void client(void) {
    struct sockaddr_storage address;
    socklen_t length = loopback(AF_INET, await_number(), &address);
    for (int way = 0; way < ways; way++) {
        int fd = OK(socket(AF_INET, SOCK_STREAM, 0)), on = 1;
        if (way == 0) {
            TRY(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on));
            TRY(connect(fd, (struct sockaddr *)&address, length));
            TRY(send(fd, "hello", 5, 0));
        } else if (way == 1) {
            TRY(sendto(fd, "hello", 5, MSG_FASTOPEN, (struct sockaddr *)&address, length));
        } else {
            struct iovec piece = {"hello", 5};
            struct msghdr message = {.msg_name = &address, .msg_namelen = length, .msg_iov = &piece, .msg_iovlen = 1};
            TRY(sendmsg(fd, &message, MSG_FASTOPEN));
        }
        warm_up(fd);
        hear(fd, 6);
        send_filled(fd, 300000);
        OK(close(fd));
    }
}

SERVER_AND_CLIENT(server, client)
