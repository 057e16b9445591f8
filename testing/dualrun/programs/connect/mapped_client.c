// An IPv6 socket that connects to a mapped address of an IPv4 server.
#include "dual.h"

static void end(void) {
    int fd;
    if (is_client) {
        struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = await_number()};
        OK(inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr));
        fd = OK(socket(AF_INET6, SOCK_STREAM, 0));
        OK(connect(fd, (struct sockaddr *)&mapped, sizeof mapped));
    } else {
        fd = connected_by(AF_INET);
    }
    warm_up(fd);
    if (is_client) send_filled(fd, 300000);
    recv_filled(fd, 300000);
    if (!is_client) send_filled(fd, 300000);
    meet();
}

SERVER_AND_CLIENT(end, end)
