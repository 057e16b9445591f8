// A socket is put into a set before it is connected, as some libraries do: it hangs up until then, through a refusal, and stays a member.
#include "epoll.h"

static void server(void) {
    int listener = listening(AF_INET);
    tell_number(port_of(listener));
    int fd = OK(accept(listener, NULL, NULL));
    warm_up(fd);
    await();
    send_text(fd, "answer");
    recv_to_end(fd);
}

static void client(void) {
    int fd = OK(socket(AF_INET, SOCK_STREAM, 0)), refusing = bound(AF_INET);
    int set = set_of(fd, EPOLLIN | EPOLLOUT);
    say_set("nowhere", set, 0);
    struct sockaddr_storage address;
    socklen_t length = loopback(AF_INET, port_of(refusing), &address);
    TRY(connect(fd, (struct sockaddr *)&address, length));
    say_set("refused", set, 0);
    length = loopback(AF_INET, await_number(), &address);
    TRY(connect(fd, (struct sockaddr *)&address, length));
    warm_up(fd);
    say_set("connected", set, -1);
    OK(control(set, EPOLL_CTL_MOD, fd, EPOLLIN));
    say_set("quiet", set, 0);
    tell();
    say_set("answered", set, -1);
    hear(fd, 6);
    send_filled(fd, 100000);
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SERVER_AND_CLIENT(server, client)
