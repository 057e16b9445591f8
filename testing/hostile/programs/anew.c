// The end that has come to the meeting forks before the other has come, so nothing may come of it. Later both go on alone: they meet anew.
//
//   anew KEEPS       KEEPS: 0 if the child closes the connection at once, else how many exchanges later it ends
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loopback.h"

#define OK(call) ({ long ok_ = (call); if (ok_ < 0) { perror(#call); exit(1); } ok_; })

enum { MUCH = 160 << 10, EXCHANGES = 6000 };
static char buffer[MUCH];

static void sends(int fd, size_t total) {
    for (size_t at = 0; at < total;) at += OK(send(fd, buffer + at, total - at, MSG_NOSIGNAL));
}

static void receives(int fd, size_t total) {
    for (size_t n = 0; n < total;) {
        long got = OK(recv(fd, buffer, total - n, 0));
        if (got == 0) exit(3);
        n += got;
    }
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    int keeps = atoi(argv[1]), begin[2], hold[2];
    char byte = 'x';
    struct sockaddr_in address;
    int listener = listen_on_loopback(&address, 1);
    OK(pipe(begin));
    OK(pipe(hold));
    pid_t other = OK(fork());
    if (other == 0) {
        OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
        close(begin[1]);
        close(hold[1]);
        int fd = connect_to(&address);
        if (OK(read(begin[0], &byte, 1)) != 1) return 1;
        receives(fd, MUCH);
        for (int n = 0; n < EXCHANGES; n++) receives(fd, 1), sends(fd, 1);
        return 0;
    }
    int fd = OK(accept(listener, NULL, NULL));
    int room = 2 * MUCH;
    OK(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room));
    // Enough for it to go to the meeting; the other has not received yet.
    sends(fd, 140 << 10);
    sends(fd, MUCH - (140 << 10));
    pid_t child = OK(fork());
    if (child == 0) {
        close(hold[1]);
        if (keeps) OK(read(hold[0], &byte, 1));
        _exit(0);
    }
    if (!keeps) OK(waitpid(child, NULL, 0));
    OK(write(begin[1], "x", 1));
    for (int n = 0; n < EXCHANGES; n++) {
        if (keeps && n == keeps) {
            close(hold[1]);
            OK(waitpid(child, NULL, 0));
        }
        sends(fd, 1), receives(fd, 1);
    }
    OK(waitpid(other, NULL, 0));
    return 0;
}
