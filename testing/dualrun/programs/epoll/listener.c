// A server of several connections with one set: listener and connections, edge-triggered, requests and answers.
#include "epoll.h"

enum { CLIENTS = 5, TURNS = 200 };

static void server(void) {
    int listener = listening(AF_INET), ended = 0, turns = 0;
    OK(fcntl(listener, F_SETFL, O_NONBLOCK));
    tell_number(port_of(listener));
    int set = set_of(listener, EPOLLIN | EPOLLET);
    while (ended < CLIENTS) {
        struct epoll_event got[4];
        int count = OK(epoll_wait(set, got, 4, -1));
        for (int i = 0; i < count; i++) {
            int fd = got[i].data.fd;
            if (fd == listener) {
                while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
                    OK(control(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET | EPOLLRDHUP));
                continue;
            }
            for (;;) {
                ssize_t length = recv(fd, buf, sizeof buf, 0);
                if (length < 0 && errno == EAGAIN) break;
                if (length <= 0) {
                    OK(close(fd));
                    ended++;
                    break;
                }
                // Requests are 32 bytes, and a client waits for its answer: so whole ones come.
                if (length != 32) die(__LINE__, "a part of a request");
                turns++;
                send_all(fd, buf, 32);
            }
        }
    }
    say("%d turns", turns);
}

static void *turns(void *with) {
    int fd = connect_port(AF_INET, (in_port_t)(intptr_t)with);
    char out[32], in[32];
    intptr_t right = 0;
    for (int i = 0; i < TURNS; i++) {
        fill(out, 32, i);
        send_all(fd, out, 32);
        right += recv_all(fd, in, 32) == 32 && memcmp(in, out, 32) == 0;
    }
    OK(close(fd));
    return (void *)right;
}

static void client(void) {
    intptr_t port = await_number(), right = 0;
    pthread_t threads[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) threads[i] = start(turns, (void *)port);
    for (int i = 0; i < CLIENTS; i++) right += (intptr_t)finish(threads[i]);
    say("%d right", (int)right);
}

SERVER_AND_CLIENT(server, client)
