// O_ASYNC that was set before there was a connection, or by a process that is no more: SIGIO for each message, for as long as the connection lasts.
#include "dual.h"

static volatile sig_atomic_t signals;

static void count(int signal) {
    (void)signal;
    signals++;
}

static int socket_with_signals(void) {
    int fd, on = 1;
    if (is_client) {
        struct sockaddr_storage address;
        fd = OK(socket(AF_INET, SOCK_STREAM, 0));
        OK(ioctl(fd, FIOASYNC, &on));
        socklen_t length = loopback(AF_INET, await_number(), &address);
        OK(connect(fd, (struct sockaddr *)&address, length));
    } else {
        fd = connected_by(AF_INET);
        pid_t child = OK(fork());
        if (child == 0) {
            OK(fcntl(fd, F_SETFL, O_ASYNC));
            _exit(0);
        }
        say_child("who sets it", child);
    }
    OK(fcntl(fd, F_SETOWN, getpid()));
    return fd;
}

static void subject(void) {
    handle(SIGIO, count, SA_RESTART);
    int fd = socket_with_signals();
    warm_up(fd);
    TRY((fcntl(fd, F_GETFL) & O_ASYNC) != 0);
    for (int turn = 0; turn < 20; turn++) {
        signals = 0;
        tell();
        while (signals == 0) sched_yield();
        settle(fd, 4);
        hear(fd, 4);
    }
    tell();
}

static void partner(void) {
    int fd = connected();
    for (int turn = 0; turn < 20; turn++) {
        await();
        send_text(fd, "data");
    }
    await();
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
