// The same over IPv6.
#include "dual.h"

static void end(void) {
    int fd = connected_by(AF_INET6);
    warm_up(fd);
    struct sockaddr_in6 peer;
    socklen_t length = sizeof peer;
    OK(getpeername(fd, (struct sockaddr *)&peer, &length));
    char text[64];
    say("%s, %u bytes", inet_ntop(AF_INET6, &peer.sin6_addr, text, sizeof text), (unsigned)length);
    if (is_client) send_filled(fd, 300000);
    recv_filled(fd, 300000);
    if (!is_client) send_filled(fd, 300000);
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SERVER_AND_CLIENT(end, end)
