// A sender waits for room on a ring, with a receiver that has sent nothing since there are rings. How often does it wake meanwhile?
//
//   room poll|epoll|send      Reads what SOVIA_TRACE_UPGRADE names. Prints: woken N
#define _GNU_SOURCE
#include "pair.h"

#include <sys/epoll.h>
#include <sys/resource.h>

static struct {
    volatile int up[2], has_received, is_full;
    volatile uint64_t sent;
} *both;

static void receives(int fd) {
    uint64_t received = 0;
    while (!both->up[0] || !both->up[1]) {
        received += OK(recv(fd, buffer, sizeof buffer, 0));
        if (!both->up[1] && !(both->up[1] = is_up(RECEIVER))) {
            OK(send(fd, "r", 1, 0));
            both->up[1] = is_up(RECEIVER);
        }
    }
    // Once since there are rings.
    received += OK(recv(fd, buffer, sizeof buffer, 0));
    both->has_received = 1;
    while (!both->is_full) sched_yield();
    // tidy: sleep because the other end's doing nothing is what is counted
    usleep(200000);
    while (received < both->sent) received += OK(recv(fd, buffer, sizeof buffer, 0));
}

static void waits(int fd, const char *how) {
    struct pollfd one = {fd, POLLOUT, 0};
    struct epoll_event event = {.events = EPOLLOUT};
    int set = OK(epoll_create1(EPOLL_CLOEXEC));
    OK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    if (strcmp(how, "poll") == 0) OK(poll(&one, 1, -1));
    else if (strcmp(how, "send") == 0) both->sent += OK(send(fd, "s", 1, 0));
    else OK(epoll_wait(set, &event, 1, -1));
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    both = shared(sizeof *both);
    pid_t receiver = pair_with(receives, RECEIVER, SENDER);
    while (!both->up[0] || !both->up[1]) {
        both->sent += OK(send(SENDER, "s", 1, 0));
        while (recv(SENDER, buffer, sizeof buffer, MSG_DONTWAIT) > 0) {}
        both->up[0] = is_up(SENDER);
    }
    while (!both->has_received) both->sent += OK(send(SENDER, "s", 1, 0)), sched_yield();
    while (recv(SENDER, buffer, sizeof buffer, MSG_DONTWAIT) > 0) {}
    for (ssize_t n; (n = send(SENDER, buffer, sizeof buffer, MSG_DONTWAIT)) > 0;) both->sent += n;
    struct rusage before, after;
    OK(getrusage(RUSAGE_SELF, &before));
    both->is_full = 1;
    waits(SENDER, argv[1]);
    OK(getrusage(RUSAGE_SELF, &after));
    printf("woken %ld\n", after.ru_nvcsw - before.ru_nvcsw);
    OK(send(SENDER, "s", 1, 0));
    both->sent++;
    OK(waitpid(receiver, NULL, 0));
    return 0;
}
