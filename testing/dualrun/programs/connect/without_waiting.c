// A connect that may not wait, to a listener that has no room: it goes on behind the program, which sees by poll when it is done.
#include "dual.h"

enum { MOST = 20, BACKLOG = 2 };

static void server(void) {
    int listener = bound(AF_INET);
    OK(listen(listener, BACKLOG));
    tell_number(port_of(listener));
    int asked = await_number(), last = -1;
    for (int i = 0; i < asked; i++) {
        last = OK(accept(listener, NULL, NULL));
        if (i < asked - 1) OK(close(last));
    }
    hear(last, 6);
    send_text(last, "served");
}

static void client(void) {
    struct sockaddr_storage address;
    socklen_t length = loopback(AF_INET, await_number(), &address);
    int asked = 0, fd = -1, ready = 1, error = -1;
    while (ready == 1 && asked < MOST) {
        fd = OK(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
        int done = connect(fd, (struct sockaddr *)&address, length);
        if (done < 0 && errno != EINPROGRESS) die(__LINE__, "connect");
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        ready = OK(poll(&room, 1, 200));
        asked++;
    }
    say("one has to wait: %d", ready == 0);
    TRY(connect(fd, (struct sockaddr *)&address, length));
    TRY(getpeername(fd, (void *)buf, &(socklen_t){16}));
    tell_number(asked);
    say_poll("connected", fd, POLLOUT, -1);
    OK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error}));
    say("error %d", error);
    OK(fcntl(fd, F_SETFL, 0));
    send_text(fd, "client");
    hear(fd, 6);
}

SERVER_AND_CLIENT(server, client)
