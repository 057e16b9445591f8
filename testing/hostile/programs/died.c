// A sender is killed with bytes unread, so that what it still had in its kernel's queue dies with it; and the receiver's first call after that is not one
// that receives: its doorbell is told of the reset. What says the next receive?
//
//   died send|shutdown|fork      Reads what SOVIA_TRACE_UPGRADE names. Prints: sent N received N told ERROR
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
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

#define OK(call) ({ long ok_ = (call); if (ok_ < 0) { perror(#call); exit(1); } ok_; })

enum { SENDER = 60, RECEIVER = 61 };
static struct {
    volatile int up[2];
    volatile uint64_t sent, looks;
} *both;
static char buffer[64 << 10];

static int is_up(int fd) {
    char text[256] = {0}, wanted[32];
    int trace = open(getenv("SOVIA_TRACE_UPGRADE"), O_RDONLY | O_CLOEXEC);
    if (trace < 0) return 0;
    if (read(trace, text, sizeof text - 1) < 0) text[0] = 0;
    close(trace);
    snprintf(wanted, sizeof wanted, "upgraded %d\n", fd);
    return strstr(text, wanted) != NULL;
}

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
    both = mmap(NULL, sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int listener = OK(socket(AF_INET, SOCK_STREAM, 0));
    OK(bind(listener, (struct sockaddr *)&address, sizeof address));
    OK(getsockname(listener, (struct sockaddr *)&address, &len));
    OK(listen(listener, 1));
    pid_t sender = OK(fork());
    if (sender == 0) {
        OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
        int fd = OK(socket(AF_INET, SOCK_STREAM, 0));
        OK(connect(fd, (struct sockaddr *)&address, sizeof address));
        OK(dup2(fd, SENDER));
        OK(close(fd));
        sends(SENDER);
    }
    int fd = OK(accept(listener, NULL, NULL));
    OK(dup2(fd, RECEIVER));
    OK(close(fd));
    close(listener);
    return receives(RECEIVER, argv[1], sender);
}
