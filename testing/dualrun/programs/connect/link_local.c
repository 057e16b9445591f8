// IPv6 addresses that mean something only with an interface, if there are such here; else the loopback's.
#include "dual.h"
#include <ifaddrs.h>

static struct sockaddr_in6 found(void) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct ifaddrs *all;
    OK(getifaddrs(&all));
    for (struct ifaddrs *one = all; one; one = one->ifa_next) {
        struct sockaddr_in6 *own = (struct sockaddr_in6 *)one->ifa_addr;
        if (own && own->sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&own->sin6_addr)) address = *own;
    }
    freeifaddrs(all);
    return address;
}

static int ends(void) {
    struct sockaddr_in6 address = found();
    int fd = OK(socket(AF_INET6, SOCK_STREAM, 0));
    if (is_client) {
        address.sin6_port = await_number();
        OK(connect(fd, (struct sockaddr *)&address, sizeof address));
        return fd;
    }
    OK(bind(fd, (struct sockaddr *)&address, sizeof address));
    OK(listen(fd, 4));
    tell_number(port_of(fd));
    return OK(accept(fd, NULL, NULL));
}

static void both(void) {
    int fd = ends();
    warm_up(fd);
    struct sockaddr_in6 own, peer;
    socklen_t length = sizeof own;
    OK(getsockname(fd, (struct sockaddr *)&own, &length));
    OK(getpeername(fd, (struct sockaddr *)&peer, &length));
    say("scopes: %d", own.sin6_scope_id == peer.sin6_scope_id);
    if (is_client) send_filled(fd, 500000);
    else recv_filled(fd, 500000);
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SERVER_AND_CLIENT(both, both)
