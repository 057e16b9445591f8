// Two processes send each other much, and then sleep for each other for ever: leftover poll|epoll
// Prints "asleep" once both are about to.
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <signal.h>
#include <unistd.h>

#include "loopback.h"

#define OK(call) ({ long ok_ = (call); if (ok_ < 0) { perror(#call); exit(1); } ok_; })

static char buffer[64 << 10];

static void sends(int fd, size_t total) {
    for (size_t n = 0; n < total; n += sizeof buffer)
        for (size_t at = 0; at < sizeof buffer;) at += OK(send(fd, buffer + at, sizeof buffer - at, 0));
}

static void receives(int fd, size_t total) {
    for (size_t n = 0; n < total;) n += OK(recv(fd, buffer, sizeof buffer, 0));
}

static void sleeps(int fd, const char *how) {
    if (strcmp(how, "poll") == 0) {
        struct pollfd one = {fd, POLLIN, 0};
        OK(poll(&one, 1, -1));
    } else {
        int set = OK(epoll_create1(0));
        struct epoll_event event = {.events = EPOLLIN};
        OK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
        OK(epoll_wait(set, &event, 1, -1));
    }
    exit(0);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    struct sockaddr_in address;
    int listener = listen_on_loopback(&address, 1), done[2];
    OK(pipe(done));
    if (OK(fork()) == 0) {
        OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
        int fd = connect_to(&address);
        receives(fd, 16 << 20);
        sends(fd, 16 << 20);
        sleeps(fd, argv[1]);
    }
    int fd = OK(accept(listener, NULL, NULL));
    sends(fd, 16 << 20);
    receives(fd, 16 << 20);
    puts("asleep");
    fflush(stdout);
    sleeps(fd, argv[1]);
}
