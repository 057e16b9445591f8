// SO_RCVLOWAT of the socket that listens is that of the connections that come to it: who has asked waits for so much of the answer.
#include "dual.h"

static void server(void) {
    int listener = listening(AF_INET), least = 10;
    OK(setsockopt(listener, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least));
    tell_number(port_of(listener));
    int fd = OK(accept(listener, NULL, NULL));
    for (int turn = 0; turn < 20; turn++) {
        send_text(fd, "what?");
        hear(fd, 10);
    }
    warm_up(fd);
    send_text(fd, "what?");
    settle(fd, 5);
    tell_number(gettid());
    TRY(recv(fd, buf, 100, 0));
    socklen_t length = sizeof least;
    OK(getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, &length));
    say("SO_RCVLOWAT is %d", least);
}

static void client(void) {
    int fd = connect_port(AF_INET, await_number());
    for (int turn = 0; turn < 20; turn++) {
        hear(fd, 5);
        send_text(fd, "0123456789");
    }
    warm_up(fd);
    hear(fd, 5);
    send_text(fd, "01234");
    wait_asleep(await_number());
    // What it has the kernel has taken out, and wakes it for as much as it asks for.
    send_text(fd, "5678901234");
    recv_to_end(fd);
}

SERVER_AND_CLIENT(server, client)
