// A pool of threads that share a set whose members report once: whoever is told of a connection has it to himself until he asks to be told again. Many short
// ones, so that a few leave TCP at any instant.
#include "dual.h"

#include <stdatomic.h>
#include <sys/epoll.h>

enum { THREADS = 8, EACH = 20, TURNS = 64, SIZE = 32 };

struct connection {
    int fd;
    atomic_int taken, gone;
};

static struct connection connections[THREADS * EACH];
static int set, ended[2];
static atomic_int served, closed, twice, late;
static struct sockaddr_storage address;
static socklen_t length;

static struct epoll_event once(struct connection *connection) {
    return (struct epoll_event){.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data.ptr = connection};
}

static void serve(struct connection *connection) {
    char bytes[SIZE];
    if (connection->gone) late++;
    else if (atomic_exchange(&connection->taken, 1)) twice++;
    else if (recv(connection->fd, bytes, SIZE, 0) == SIZE) {
        if (send(connection->fd, bytes, SIZE, 0) != SIZE) die(__LINE__, "send");
        served++;
        connection->taken = 0;
        struct epoll_event again = once(connection);
        OK(epoll_ctl(set, EPOLL_CTL_MOD, connection->fd, &again));
    } else {
        connection->gone = 1;
        OK(epoll_ctl(set, EPOLL_CTL_DEL, connection->fd, NULL));
        OK(close(connection->fd));
        if (++closed == THREADS * EACH) OK(write(ended[1], "", 1));
    }
}

static void *works(void *with) {
    struct epoll_event event;
    for (;;) {
        OK(epoll_wait(set, &event, 1, -1));
        // The end of the pool, which stays.
        if (event.data.ptr == NULL) return with;
        serve(event.data.ptr);
    }
}

static void server(void) {
    int listener = listening(AF_INET);
    set = OK(epoll_create1(0));
    OK(pipe(ended));
    struct epoll_event end = {.events = EPOLLIN};
    OK(epoll_ctl(set, EPOLL_CTL_ADD, ended[0], &end));
    pthread_t pool[THREADS];
    for (int i = 0; i < THREADS; i++) pool[i] = start(works, NULL);
    tell_number(port_of(listener));
    for (int i = 0; i < THREADS * EACH; i++) {
        connections[i].fd = OK(accept(listener, NULL, NULL));
        struct epoll_event first = once(&connections[i]);
        OK(epoll_ctl(set, EPOLL_CTL_ADD, connections[i].fd, &first));
    }
    for (int i = 0; i < THREADS; i++) finish(pool[i]);
    say("served %d, told twice %d, told of one that was closed %d", served, twice, late);
}

static void *calls(void *with) {
    for (int i = 0; i < EACH; i++) {
        char bytes[SIZE] = {0};
        int fd = OK(socket(AF_INET, SOCK_STREAM, 0));
        OK(connect(fd, (struct sockaddr *)&address, length));
        for (int turn = 0; turn < TURNS; turn++) {
            if (send(fd, bytes, SIZE, 0) != SIZE) die(__LINE__, "send");
            if (recv(fd, bytes, SIZE, MSG_WAITALL) != SIZE) die(__LINE__, "recv");
        }
        OK(close(fd));
    }
    return with;
}

static void client(void) {
    length = loopback(AF_INET, await_number(), &address);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) threads[i] = start(calls, NULL);
    for (int i = 0; i < THREADS; i++) finish(threads[i]);
    say("called");
}

SERVER_AND_CLIENT(server, client)
