// A sender has read all, and is killed with a doorbell unread or before one, so that the kernel resets the connection. Its last bytes are on the ring,
// and before them some are on TCP, which the receiver has not taken. What do those who wait tell him? Without sovia the connection has just ended.
//
//   kept byte|end|room      What the doorbell was for: a last byte, the end, or room on the ring. Reads what SOVIA_TRACE_UPGRADE names.
//                           Prints what poll tells one who waits for nothing, what it and epoll tell one who waits for bytes, and:
//                           sent N received N told ERROR
#define _GNU_SOURCE
#include "pair.h"

#include <sys/epoll.h>

static struct {
    volatile int up[2], rounds, has_received, is_quiet, is_waiting;
    volatile uint64_t sent;
} *both;
enum { ROUNDS = 20, MUCH = 30000 };
static int for_room;

static void sends(int fd) {
    char byte;
    while (!both->up[0] || !both->up[1]) {
        OK(recv(fd, &byte, 1, 0));
        both->sent += OK(send(fd, "s", 1, 0));
        both->up[0] = is_up(SENDER);
    }
    while (both->rounds < ROUNDS) {
        // Else all may have gone over TCP before the other end comes to that.
        while (both->rounds == ROUNDS / 2 && !both->has_received) sched_yield();
        OK(recv(fd, &byte, 1, 0));
        both->sent += OK(send(fd, buffer, 10, 0));
        both->rounds++;
    }
    both->sent += OK(send(fd, buffer, MUCH, 0));
    while (!both->is_quiet) sched_yield();
    while (recv(fd, &byte, 1, MSG_DONTWAIT) > 0) {}
    for (ssize_t n; for_room && (n = send(fd, buffer, sizeof buffer, MSG_DONTWAIT)) > 0;) both->sent += n;
    struct pollfd one = {fd, for_room ? POLLOUT : POLLIN, 0};
    both->is_waiting = 1;
    OK(poll(&one, 1, -1));
    OK(recv(fd, &byte, 1, 0));
    OK(kill(getpid(), SIGKILL));
}

static int is_asleep(pid_t process) {
    char name[64], text[256] = {0};
    snprintf(name, sizeof name, "/proc/%d/stat", process);
    int fd = OK(open(name, O_RDONLY | O_CLOEXEC));
    OK(read(fd, text, sizeof text - 1));
    close(fd);
    return strstr(text, ") S ") != NULL;
}

static int polled(int fd, short events) {
    struct pollfd one = {fd, events, 0};
    OK(poll(&one, 1, 0));
    return one.revents;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    for_room = strcmp(argv[1], "room") == 0;
    both = shared(sizeof *both);
    pid_t sender = pair_with(sends, SENDER, RECEIVER);
    int fd = RECEIVER;
    uint64_t received = 0;
    for (;;) {
        OK(send(fd, "r", 1, 0));
        if (is_up(fd)) break;
        received += OK(recv(fd, buffer, 1, 0));
        if (is_up(fd)) break;
    }
    both->up[1] = 1;
    while (!both->up[0]) OK(send(fd, "r", 1, 0)), sched_yield();
    // What comes now comes over TCP until this end has received once more.
    while (both->rounds < ROUNDS / 2) OK(send(fd, "r", 1, 0)), sched_yield();
    received += OK(recv(fd, buffer, 1, 0));
    both->has_received = 1;
    while (both->rounds < ROUNDS) OK(send(fd, "r", 1, 0)), sched_yield();
    both->is_quiet = 1;
    while (!both->is_waiting || !is_asleep(sender)) sched_yield();
    if (for_room) OK(kill(sender, SIGKILL));
    else if (strcmp(argv[1], "end") == 0) OK(shutdown(fd, SHUT_WR));
    else OK(send(fd, "r", 1, 0));
    OK(waitpid(sender, NULL, 0));
    if (for_room) {
        polled(fd, POLLIN | POLLRDHUP);
        while (received < both->sent / 2) received += OK(recv(fd, buffer, sizeof buffer, 0));
    }
    int nothing = polled(fd, 0), bytes = polled(fd, POLLIN | POLLRDHUP), set = OK(epoll_create1(EPOLL_CLOEXEC)), told = 0;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP};
    OK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    OK(epoll_wait(set, &event, 1, 0));
    for (ssize_t n; (n = recv(fd, buffer, sizeof buffer, 0)) != 0; received += n) {
        if (n > 0) continue;
        told = errno;
        break;
    }
    printf("%x %x %x sent %lu received %lu told %s\n", nothing, bytes, (unsigned)event.events, (unsigned long)both->sent, (unsigned long)received,
           told ? strerrorname_np(told) : "nothing");
    return 0;
}
