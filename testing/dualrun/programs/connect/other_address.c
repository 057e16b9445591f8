// Another address of the loopback network, and a client that chose its own.
#include "dual.h"

static void end(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("127.0.0.2")};
    int fd = OK(socket(AF_INET, SOCK_STREAM, 0));
    if (is_client) {
        struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("127.0.0.3")};
        OK(bind(fd, (struct sockaddr *)&own, sizeof own));
        address.sin_port = await_number();
        OK(connect(fd, (struct sockaddr *)&address, sizeof address));
    } else {
        OK(bind(fd, (struct sockaddr *)&address, sizeof address));
        OK(listen(fd, 5));
        tell_number(port_of(fd));
        fd = OK(accept(fd, NULL, NULL));
    }
    warm_up(fd);
    struct sockaddr_in peer;
    OK(getpeername(fd, (struct sockaddr *)&peer, &(socklen_t){sizeof peer}));
    say("%s", inet_ntoa(peer.sin_addr));
    send_text(fd, "hello");
    hear(fd, 5);
}

SERVER_AND_CLIENT(end, end)
