// Two processes with a connection between them, each of which knows when both its ends have left TCP.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loopback.h"

#define OK(call) ({ long ok_ = (call); if (ok_ < 0) { perror(#call); exit(1); } ok_; })

// What the descriptors of the two are.
enum { SENDER = 60, RECEIVER = 61 };
static char buffer[64 << 10];

// Whether the connection with that descriptor has been upgraded, as what SOVIA_TRACE_UPGRADE names says.
static inline int is_up(int fd) {
    char text[256] = {0}, wanted[32];
    int trace = open(getenv("SOVIA_TRACE_UPGRADE"), O_RDONLY | O_CLOEXEC);
    if (trace < 0) return 0;
    if (read(trace, text, sizeof text - 1) < 0) text[0] = 0;
    close(trace);
    snprintf(wanted, sizeof wanted, "upgraded %d\n", fd);
    return strstr(text, wanted) != NULL;
}

// Memory that a child has too.
static inline void *shared(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) exit(1);
    return memory;
}

// Connects a child, which runs `runs` with its end at `childs`, to this process, whose end is at `own`.
static inline pid_t pair_with(void (*runs)(int), int childs, int own) {
    struct sockaddr_in address;
    int listener = listen_on_loopback(&address, 1);
    pid_t child = OK(fork());
    if (child == 0) {
        OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
        int fd = connect_to(&address);
        OK(dup2(fd, childs));
        OK(close(fd));
        runs(childs);
        exit(0);
    }
    int fd = OK(accept(listener, NULL, NULL));
    OK(dup2(fd, own));
    OK(close(fd));
    OK(close(listener));
    return child;
}
