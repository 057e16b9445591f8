// A sender is killed with bytes unread, so that what it still had in its kernel's queue dies with it; and the receiver's first call after that is not one
// that receives: its doorbell is told of the reset. What says the next receive?
//
//   died send|shutdown|fork      Reads what SOVIA_TRACE_UPGRADE names. Prints: sent N received N told ERROR
#define _GNU_SOURCE
#include "pair.h"

static struct {
    volatile int up[2];
    volatile uint64_t sent, looks;
} *both;

// Goes on as long as the other needs calls of ours, and fills the connection. It sleeps for room then, and would be rung for.
static void sends(int fd) {
    char byte = 's';
    while (!both->up[0]) {
        OK(recv(fd, &byte, 1, 0));
        both->sent += OK(send(fd, "s", 1, 0));
        both->up[0] = is_up(SENDER);
    }
    while (!both->up[1]) both->sent += OK(send(fd, "s", 1, 0)), sched_yield();
    for (ssize_t n; (n = send(fd, buffer, sizeof buffer, MSG_DONTWAIT)) > 0;) both->sent += n;
    struct pollfd one = {fd, POLLOUT, 0};
    for (;;) {
        OK(poll(&one, 1, 5));
        both->looks++;
    }
}

static void await_looks(uint64_t more) {
    for (uint64_t until = both->looks + more; both->looks < until;) sched_yield();
}

static int receives(int fd, const char *how, pid_t sender) {
    char byte;
    uint64_t received = 0;
    for (;;) {
        OK(send(fd, "r", 1, 0));
        if (is_up(RECEIVER)) break;
        received += OK(recv(fd, &byte, 1, 0));
        if (is_up(RECEIVER)) break;
    }
    // From here on it receives nothing, so that what comes, comes over TCP. It sends more than is taken.
    both->up[1] = 1;
    while (!both->up[0]) OK(send(fd, "r", 1, 0)), sched_yield();
    OK(send(fd, "r", 1, 0));
    await_looks(2);
    // The ring, and the sender armed again.
    OK(send(fd, "r", 1, 0));
    await_looks(2);
    OK(kill(sender, SIGKILL));
    OK(waitpid(sender, NULL, 0));
    int told = 0;
    if (strcmp(how, "shutdown") == 0) {
        if (shutdown(fd, SHUT_WR) < 0) told = errno;
    } else if (send(fd, "r", 1, MSG_NOSIGNAL) < 0) {
        told = errno;
    }
    if (strcmp(how, "fork") == 0) {
        // The error was told in another process.
        int status;
        pid_t heir = OK(fork());
        if (heir != 0) {
            close(fd);
            OK(waitpid(heir, &status, 0));
            exit(WEXITSTATUS(status));
        }
    }
    for (;;) {
        ssize_t n = recv(fd, buffer, sizeof buffer, 0);
        if (n < 0 && told == 0) told = errno;
        if (n <= 0) break;
        received += n;
    }
    printf("sent %lu received %lu told %s\n", (unsigned long)both->sent, (unsigned long)received, told ? strerrorname_np(told) : "nothing");
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    both = shared(sizeof *both);
    pid_t sender = pair_with(sends, SENDER, RECEIVER);
    return receives(RECEIVER, argv[1], sender);
}
