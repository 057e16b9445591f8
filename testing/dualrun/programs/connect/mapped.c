// An IPv4 client at a server that listens on IPv6: the server sees a mapped address.
#include "dual.h"

static void end(void) {
    int fd;
    if (is_client) {
        fd = connect_port(AF_INET, await_number());
    } else {
        int listener = OK(socket(AF_INET6, SOCK_STREAM, 0));
        struct sockaddr_in6 any = {.sin6_family = AF_INET6};
        OK(setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int)));
        OK(bind(listener, (struct sockaddr *)&any, sizeof any));
        OK(listen(listener, 5));
        tell_number(port_of(listener));
        fd = OK(accept(listener, NULL, NULL));
    }
    warm_up(fd);
    struct sockaddr_in6 peer;
    socklen_t length = sizeof peer;
    OK(getpeername(fd, (struct sockaddr *)&peer, &length));
    char text[64] = "IPv4";
    if (peer.sin6_family == AF_INET6) inet_ntop(AF_INET6, &peer.sin6_addr, text, sizeof text);
    say("%s, %u bytes", text, (unsigned)length);
    if (is_client) send_text(fd, "hello");
    else hear(fd, 5);
    if (is_client) recv_to_end(fd);
    else send_filled(fd, 300000);
}

SERVER_AND_CLIENT(end, end)
