// A connection always has something when one waits, and a pipe has something now and then: that is told soon, at once after a pause, and at once to who
// does not wait.
#include "epoll.h"
#include <sys/select.h>

enum { BUSY = 50, SOON = 16 };
enum { CONNECTION = 1, PIPE = 2 };

static int by_poll(int fd, int other, int timeout) {
    struct pollfd both[] = {{.fd = other, .events = POLLIN}, {.fd = fd, .events = POLLIN | POLLPRI}};
    OK(poll(both, 2, timeout));
    return (both[1].revents ? CONNECTION : 0) | (both[0].revents ? PIPE : 0);
}

static int by_select(int fd, int other, int timeout) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    FD_SET(other, &set);
    struct timeval now = {0};
    OK(select((fd > other ? fd : other) + 1, &set, NULL, NULL, timeout == 0 ? &now : NULL));
    return (FD_ISSET(fd, &set) ? CONNECTION : 0) | (FD_ISSET(other, &set) ? PIPE : 0);
}

static int set;

static int by_epoll(int fd, int other, int timeout) {
    struct epoll_event events[2];
    int count = OK(epoll_wait(set, events, 2, timeout)), found = 0;
    for (int i = 0; i < count; i++) found |= events[i].data.fd == fd ? CONNECTION : events[i].data.fd == other ? PIPE : 0;
    return found;
}

typedef int find(int fd, int other, int timeout);

// What is found when the connection has something.
static int turn(find *found, int fd, int other, int timeout) {
    OK(send(fd, "?", 1, 0));
    settle(fd, 1);
    int all = found(fd, other, timeout);
    if (OK(recv(fd, buf, 1, 0)) != 1) die(__LINE__, "recv");
    return all;
}

static void busy(find *found, int fd, int ends[2]) {
    for (int i = 0; i < BUSY; i++)
        if (turn(found, fd, ends[0], -1) != CONNECTION) die(__LINE__, "the pipe has nothing");
    OK(write(ends[1], "!", 1));
}

static void look(const char *how, find *found, int fd, int ends[2]) {
    busy(found, fd, ends);
    int turns = 1;
    while (!(turn(found, fd, ends[0], -1) & PIPE)) turns++;
    say("%s: soon %d", how, turns <= SOON);
    OK(read(ends[0], buf, 1));

    busy(found, fd, ends);
    // Longer than a tick of the kernel's.
    usleep(30000);
    say("%s: after a pause %d", how, turn(found, fd, ends[0], -1));
    OK(read(ends[0], buf, 1));

    busy(found, fd, ends);
    say("%s: without waiting %d", how, turn(found, fd, ends[0], 0));
    OK(read(ends[0], buf, 1));
}

static void subject(int fd) {
    int ends[2];
    OK(pipe(ends));
    set = set_of(fd, EPOLLIN);
    OK(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &(struct epoll_event){.events = EPOLLIN, .data.fd = ends[0]}));
    look("poll", by_poll, fd, ends);
    look("select", by_select, fd, ends);
    look("epoll", by_epoll, fd, ends);
}

static void partner(int fd) {
    while (recv(fd, buf, 1, 0) == 1) send_all(fd, "!", 1);
}

SUBJECT_AND_PARTNER(subject, partner)
