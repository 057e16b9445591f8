// Many connections in two sets, one of which waits for their ends alone. It is woken by what comes on each; the other is to tell of all.
#include "epoll.h"

enum { MANY = 72 };

static int fds[MANY];

static void server(void) {
    int listener = listening(AF_INET), ends = new_set(), bytes = new_set();
    tell_number(port_of(listener));
    for (int i = 0; i < MANY; i++) {
        fds[i] = OK(accept(listener, NULL, NULL));
        warm_up(fds[i]);
        OK(control(ends, EPOLL_CTL_ADD, fds[i], EPOLLRDHUP));
        OK(control(bytes, EPOLL_CTL_ADD, fds[i], EPOLLIN));
    }
    struct epoll_event ready[MANY];
    say("%ld ready", OK(epoll_wait(bytes, ready, MANY, 20)));
    say("%ld have ended", OK(epoll_wait(ends, ready, MANY, 20)));
    tell();
    await();
    say("%ld have ended", OK(epoll_wait(ends, ready, MANY, 20)));
    int heard = 0;
    while (heard < MANY) {
        int count = OK(epoll_wait(bytes, ready, MANY, 5000));
        if (count == 0) break;
        for (int i = 0; i < count; i++) OK(recv(ready[i].data.fd, &(char){0}, 1, 0));
        heard += count;
    }
    say("%d heard", heard);
}

static void client(void) {
    in_port_t port = await_number();
    for (int i = 0; i < MANY; i++) {
        fds[i] = connect_port(AF_INET, port);
        warm_up(fds[i]);
    }
    await();
    for (int i = 0; i < MANY; i++) send_text(fds[i], "x");
    tell();
    for (int i = 0; i < MANY; i++) recv_to_end(fds[i]);
}

SERVER_AND_CLIENT(server, client)
