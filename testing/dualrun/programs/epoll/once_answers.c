// A server that asks to be told once of an edge, of input and then, when its long answer fits no more, of room: connections leave TCP in the middle of answers.
#include "dual.h"

#include <sys/epoll.h>

enum { CONNECTIONS = 12, LONG = 3000000, ANSWERS = 2 };

static void ask(int set, int fd, unsigned for_what, int operation) {
    struct epoll_event event = {.events = for_what | EPOLLET | EPOLLONESHOT, .data.fd = fd};
    OK(epoll_ctl(set, operation, fd, &event));
}

static uint32_t answer[CONNECTIONS + 1000], done[CONNECTIONS + 1000];

// What still fits of the answer; whether that is all.
static int goes_on(int fd) {
    while (done[fd] < answer[fd]) {
        size_t part = answer[fd] - done[fd] < 5000 ? answer[fd] - done[fd] : 5000;
        fill(buf, part, done[fd]);
        ssize_t sent = send(fd, buf, part, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) return 0;
        done[fd] += OK(sent);
    }
    return 1;
}

static void server(void) {
    int listener = listening(AF_INET), set = OK(epoll_create1(0)), ended = 0;
    tell_number(port_of(listener));
    for (int i = 0; i < CONNECTIONS; i++) {
        int fd = OK(accept4(listener, NULL, NULL, SOCK_NONBLOCK));
        ask(set, fd, EPOLLIN, EPOLL_CTL_ADD);
        for (int open = 1; open;) {
            struct epoll_event event;
            if (OK(epoll_wait(set, &event, 1, -1)) != 1 || event.data.fd != fd) die(__LINE__, "epoll_wait");
            if (event.events & EPOLLIN) {
                uint32_t wanted;
                ssize_t got = recv(fd, &wanted, sizeof wanted, 0);
                if (got == sizeof wanted) {
                    answer[fd] = wanted;
                    done[fd] = 0;
                } else if (got == 0) {
                    open = 0;
                    ended++;
                    continue;
                } else if (errno != EAGAIN) die(__LINE__, "recv");
            }
            ask(set, fd, goes_on(fd) ? EPOLLIN : EPOLLOUT, EPOLL_CTL_MOD);
        }
        OK(close(fd));
    }
    say("%d connections", ended);
}

static void wants(int fd, uint32_t wanted) {
    if (send_all(fd, &wanted, sizeof wanted) != sizeof wanted) die(__LINE__, "send");
    recv_filled(fd, wanted);
}

static void client(void) {
    struct sockaddr_storage address;
    socklen_t length = loopback(AF_INET, await_number(), &address);
    for (int i = 0; i < CONNECTIONS; i++) {
        int fd = OK(socket(AF_INET, SOCK_STREAM, 0));
        OK(connect(fd, (struct sockaddr *)&address, length));
        // The one after which there are rings differs.
        for (int few = 0; few < i % 6; few++) wants(fd, 10);
        for (int many = 0; many < ANSWERS; many++) wants(fd, LONG);
        OK(close(fd));
    }
    say("all answers");
}

SERVER_AND_CLIENT(server, client)
