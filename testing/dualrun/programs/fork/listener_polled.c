// A listener that a child has, too, and polls: what it accepts has addresses and options. Then the parent accepts.
#include "dual.h"

static void named(int fd, struct sockaddr_in *peer, in_port_t local) {
    struct sockaddr_in ours, theirs;
    socklen_t length = sizeof ours;
    int on = 1;
    warm_up(fd);
    OK(getsockname(fd, (struct sockaddr *)&ours, &length));
    say("family %d, port %d", ours.sin_family == AF_INET, ours.sin_port == local);
    length = sizeof theirs;
    OK(getpeername(fd, (struct sockaddr *)&theirs, &length));
    say("peer %d", theirs.sin_family == peer->sin_family && theirs.sin_port == peer->sin_port);
    TRY(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    hear(fd, 5);
    send_text(fd, "yes");
    recv_to_end(fd);
    OK(close(fd));
}

static void server(void) {
    int listener = listening(AF_INET);
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    OK(fcntl(listener, F_SETFL, O_NONBLOCK));
    in_port_t local = port_of(listener);
    pid_t child = OK(fork());
    if (child == 0) {
        TRY(accept(listener, NULL, NULL));
        tell_number(local);
        say_poll("the child", listener, POLLIN, -1);
        int fd = OK(accept4(listener, (struct sockaddr *)&peer, &length, SOCK_CLOEXEC));
        say("closed on exec %d, waits %d", fcntl(fd, F_GETFD) == FD_CLOEXEC, (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0);
        named(fd, &peer, local);
        _exit(0);
    }
    say_child("child", child);
    OK(fcntl(listener, F_SETFL, 0));
    tell();
    int fd = OK(accept(listener, (struct sockaddr *)&peer, &length));
    named(fd, &peer, local);
    OK(listen(listener, 3));
    OK(close(listener));
    tell();
}

static void client(void) {
    in_port_t port = await_number();
    for (int i = 0; i < 2; i++) {
        int fd = connect_port(AF_INET, port);
        warm_up(fd);
        send_text(fd, "hello");
        hear(fd, 3);
        OK(close(fd));
        await();
    }
    struct sockaddr_storage address;
    int fd = OK(socket(AF_INET, SOCK_STREAM, 0));
    socklen_t length = loopback(AF_INET, port, &address);
    TRY(connect(fd, (struct sockaddr *)&address, length));
}

SERVER_AND_CLIENT(server, client)
