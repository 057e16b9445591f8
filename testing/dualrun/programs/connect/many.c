// A hundred short connections after each other, then fifty at once.
#include "dual.h"

static void server(void) {
    int listener = listening(AF_INET);
    tell_number(port_of(listener));
    int right = 0;
    for (int i = 0; i < 100; i++) {
        int fd = OK(accept(listener, NULL, NULL));
        right += recv_all(fd, buf, 7) == 7 && send_all(fd, "answer", 6) == 6;
        OK(close(fd));
    }
    say("%d right", right);
    int fds[50];
    for (int i = 0; i < 50; i++) fds[i] = OK(accept(listener, NULL, NULL));
    for (int i = 0; i < 50; i++) warm_up(fds[i]);
    for (int i = 0; i < 50; i++) right += recv_all(fds[i], buf, 7) == 7 && send_all(fds[i], "answer", 6) == 6;
    say("%d right", right);
}

static void client(void) {
    in_port_t port = await_number();
    int right = 0;
    for (int i = 0; i < 100; i++) {
        int fd = connect_port(AF_INET, port);
        right += send_all(fd, "request", 7) == 7 && recv_all(fd, buf, 7) == 6;
        OK(close(fd));
    }
    say("%d right", right);
    int fds[50];
    for (int i = 0; i < 50; i++) fds[i] = connect_port(AF_INET, port);
    for (int i = 0; i < 50; i++) warm_up(fds[i]);
    for (int i = 0; i < 50; i++) right += send_all(fds[i], "request", 7) == 7;
    for (int i = 0; i < 50; i++) right += recv_all(fds[i], buf, 6) == 6;
    say("%d right", right);
}

SERVER_AND_CLIENT(server, client)
