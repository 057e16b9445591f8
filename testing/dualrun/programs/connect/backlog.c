// Connections wait in the backlog with what their clients have sent, and are accepted in order; one is gone by then.
#include "dual.h"

enum { CLIENTS = 8 };

static void server(void) {
    int listener = listening(AF_INET);
    tell_number(port_of(listener));
    await();
    for (int i = 0; i < CLIENTS; i++) {
        int fd = OK(accept(listener, NULL, NULL));
        hear(fd, 8);
        if (i == 3) recv_to_end(fd);
        else send_text(fd, "ok");
        OK(close(fd));
    }
}

static void client(void) {
    in_port_t port = await_number();
    int fds[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = connect_port(AF_INET, port);
        char text[16];
        snprintf(text, sizeof text, "client %d", i);
        send_text(fds[i], text);
    }
    OK(close(fds[3]));
    tell();
    for (int i = 0; i < CLIENTS; i++)
        if (i != 3) hear(fds[i], 2);
}

SERVER_AND_CLIENT(server, client)
