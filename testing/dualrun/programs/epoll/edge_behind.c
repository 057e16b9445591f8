// An edge-triggered reader that has left bytes unread is told of each that comes after, also where the sender has gone back to TCP meanwhile and the unread
// ones are in memory.
#include "epoll.h"

enum { TIMES = 3 };

static void server(void) {
    int listener = listening(AF_INET);
    tell_number(port_of(listener));
    int fd = OK(accept(listener, NULL, NULL));
    warm_up(fd);
    hear(fd, 4);
    int set = set_of(fd, EPOLLIN | EPOLLET);
    say_set("some unread", set, 10000);
    for (int i = 0; i < TIMES; i++) {
        send_text(fd, "more");
        say_set("one more", set, 10000);
        say_set("and then", set, 20);
    }
    hear(fd, 8 + TIMES);
    send_text(fd, "last");
    recv_to_end(fd);
    OK(close(set));
    OK(close(fd));
}

static void client(void) {
    int fd = connect_port(AF_INET, await_number());
    warm_up(fd);
    send_text(fd, "here is more");
    for (int i = 0; i < TIMES; i++) {
        hear(fd, 4);
        // From the first on TCP carries what is sent.
        OK(setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &(unsigned){500000000}, sizeof(unsigned)));
        send_text(fd, "1");
    }
    hear(fd, 4);
    OK(close(fd));
}

SERVER_AND_CLIENT(server, client)
