// A socket that is made before a fork, and connected after it by the child: the parent has it too, and goes on with it.
#include "dual.h"

enum { TURNS = 40 };

static void server(void) {
    int listener = listening(AF_INET);
    tell_number(port_of(listener));
    int fd = OK(accept(listener, NULL, NULL));
    for (int i = 0; i < TURNS; i++) {
        hear(fd, 4);
        send_text(fd, "back");
    }
    hear(fd, 5);
    send_text(fd, "again");
    warm_up(fd);
    hear(fd, 5);
    send_text(fd, "world");
    recv_to_end(fd);
}

static void client(void) {
    struct sockaddr_storage address;
    int fd = OK(socket(AF_INET, SOCK_STREAM, 0));
    socklen_t length = loopback(AF_INET, await_number(), &address);
    pid_t child = OK(fork());
    if (child == 0) {
        if (connect(fd, (struct sockaddr *)&address, length) != 0) die(__LINE__, "connect");
        for (int i = 0; i < TURNS; i++) {
            send_text(fd, "turn");
            hear(fd, 4);
        }
        _exit(0);
    }
    say_child("child", child);
    send_text(fd, "still");
    hear(fd, 5);
    warm_up(fd);
    send_text(fd, "hello");
    hear(fd, 5);
}

SERVER_AND_CLIENT(server, client)
