// Connections over the loopback device, to a port of the kernel's choice.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

// A listener, and where it is.
static inline int listen_on_loopback(struct sockaddr_in *address, int backlog) {
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof *address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)address, len) < 0 || getsockname(listener, (struct sockaddr *)address, &len) < 0 ||
        listen(listener, backlog) < 0) {
        perror("a listener on loopback");
        exit(1);
    }
    return listener;
}

static inline int connect_to(const struct sockaddr_in *address) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof *address) < 0) {
        perror("a connection on loopback");
        exit(1);
    }
    return fd;
}
