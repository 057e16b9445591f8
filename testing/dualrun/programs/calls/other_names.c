// glibc's other names for calls are those calls.
#include "dual.h"
#include <sys/select.h>

int __clone(int (*start)(void *), void *stack, int flags, void *argument, ...);
int __close(int fd);
int __connect(int fd, const struct sockaddr *address, socklen_t length);
int __dup2(int fd, int to);
int __fcntl(int fd, int command, ...);
pid_t __fork(void);
int __poll(struct pollfd *fds, nfds_t count, int timeout);
ssize_t __read(int fd, void *to, size_t length);
int __select(int count, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout);
ssize_t __send(int fd, const void *from, size_t length, int flags);
ssize_t __write(int fd, const void *from, size_t length);

static int in_clone(void *with) {
    __write(*(int *)with, "clone", 5);
    return 3;
}

static char stack[65536] __attribute__((aligned(64)));

static void every_name(int fd) {
    TRY(__send(fd, "hello ", 6, 0));
    TRY(__write(fd, "there", 5));
    struct pollfd one = {.fd = fd, .events = POLLIN};
    TRY(__poll(&one, 1, -1));
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    TRY(__select(fd + 1, &set, NULL, NULL, NULL));
    settle(fd, 5);
    TRY(__read(fd, buf, 10));
    say("%.5s", buf);

    OK(__fcntl(fd, F_SETFL, O_NONBLOCK));
    TRY(__read(fd, buf, 10));
    OK(__fcntl(fd, F_SETFL, 0));
    int copy = OK(__fcntl(fd, F_DUPFD_CLOEXEC, 200));
    TRY(__write(copy, "copy", 4));
    OK(__dup2(copy, 300));
    TRY(__close(copy));
    TRY(__write(copy, "copy", 4));
    TRY(__write(300, "dup2", 4));
    TRY(__close(300));

    pid_t child = OK(__fork());
    if (child == 0) {
        __write(fd, "child", 5);
        _exit(2);
    }
    say_child("fork", child);
    child = OK(__clone(in_clone, stack + sizeof stack, SIGCHLD, &fd));
    say_child("clone", child);
    TRY(__write(fd, "end", 3));
    TRY(__close(fd));
    TRY(__read(fd, buf, 10));
}

static void partner_of(int fd) {
    hear(fd, 11);
    send_text(fd, "12345");
    hear(fd, 4 + 4 + 5 + 5 + 3);
    recv_to_end(fd);
    OK(__close(fd));
}

// The client connects by the other name, too.
static int made(void) {
    int fd;
    if (is_client) {
        struct sockaddr_storage address;
        fd = OK(socket(AF_INET, SOCK_STREAM, 0));
        socklen_t length = loopback(AF_INET, await_number(), &address);
        TRY(__connect(fd, (struct sockaddr *)&address, length));
    } else {
        int listener = listening(AF_INET);
        tell_number(port_of(listener));
        fd = OK(accept(listener, NULL, NULL));
        OK(__close(listener));
    }
    warm_up(fd);
    return fd;
}

static void subject(void) { every_name(made()); }

static void partner(void) { partner_of(made()); }

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
