// A server that has given up root and forks for each connection: its ancestors may not be looked at, and have nothing of what it accepts.
#include "dual.h"

#include <grp.h>
#include <sys/prctl.h>

enum { NOBODY = 65534 };

static void server(void) {
    int listener = listening(AF_INET);
    // As daemons do; and in the session of the tests there are younger processes.
    if (getpgrp() == getpid()) say("a leader already");
    else OK(setsid());
    if (getuid() == 0) {
        OK(setgroups(0, NULL));
        OK(setresgid(NOBODY, NOBODY, NOBODY));
        OK(setresuid(NOBODY, NOBODY, NOBODY));
        // As after exec.
        OK(prctl(PR_SET_DUMPABLE, 1));
    }
    tell_number(port_of(listener));
    int fd = OK(accept(listener, NULL, NULL)), closed[2];
    OK(pipe(closed));
    pid_t child = OK(fork());
    if (child == 0) {
        OK(close(listener));
        OK(close(closed[1]));
        OK(read(closed[0], buf, 1)); // comes to its end when the parent has the connection no more
        warm_up(fd);
        hear(fd, 4);
        send_text(fd, "pong");
        recv_to_end(fd);
        _exit(0);
    }
    OK(close(fd));
    OK(close(closed[1]));
    OK(close(listener));
    say_child("child", child);
}

static void client(void) {
    int fd = connect_port(AF_INET, await_number());
    warm_up(fd);
    send_text(fd, "ping");
    hear(fd, 4);
    OK(close(fd));
}

SERVER_AND_CLIENT(server, client)
