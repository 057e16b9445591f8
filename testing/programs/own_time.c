// What redis-server takes for itself: a library that answers for the kernel, to be preloaded in place of libsovia.so. Once each of 50 clients has asked twice,
// every epoll_wait has one request (PIPELINE of them) on each connection at once, every read brings it, and every write is thrown away. The time of a request
// goes to standard error, every two million. own_time.sh runs it. What the library itself takes is in the figure: some nanoseconds.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 50, FDS = 4096, EACH = 2000000, PIPELINE_MAX = 256 };

static const char GET[] = "*2\r\n$3\r\nGET\r\n$16\r\nkey:__rand_int__\r\n";
enum { GET_LENGTH = sizeof GET - 1 };

static int pipeline = 1;
static char requests[PIPELINE_MAX * GET_LENGTH];
static int asked[FDS];
static int connections[CLIENTS], known;
static unsigned long served;
static double since_ns;

static ssize_t (*real_read)(int, void *, size_t);
static ssize_t (*real_write)(int, const void *, size_t);
static int (*real_wait)(int, struct epoll_event *, int, int);

__attribute__((constructor)) static void begin(void) {
    real_read = dlsym(RTLD_NEXT, "read");
    real_write = dlsym(RTLD_NEXT, "write");
    real_wait = dlsym(RTLD_NEXT, "epoll_wait");
    const char *wanted = getenv("PIPELINE");
    if (wanted) pipeline = atoi(wanted);
    if (pipeline < 1 || pipeline > PIPELINE_MAX) pipeline = 1;
    for (int i = 0; i < pipeline; i++) memcpy(requests + i * GET_LENGTH, GET, GET_LENGTH);
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static int is_ours(int fd) { return known == CLIENTS && fd >= 0 && fd < FDS && asked[fd] >= 2; }

int epoll_wait(int set, struct epoll_event *events, int most, int timeout) {
    if (known < CLIENTS || most < CLIENTS) return real_wait(set, events, most, timeout);
    for (int i = 0; i < CLIENTS; i++) events[i] = (struct epoll_event){.events = EPOLLIN, .data.fd = connections[i]};
    served += CLIENTS * pipeline;
    if (served >= EACH) {
        fprintf(stderr, "%.1f ns a request\n", (now_ns() - since_ns) / served);
        since_ns = now_ns();
        served = 0;
    }
    return CLIENTS;
}

ssize_t read(int fd, void *to, size_t room) {
    if (is_ours(fd) && room >= (size_t)(pipeline * GET_LENGTH)) {
        memcpy(to, requests, pipeline * GET_LENGTH);
        return pipeline * GET_LENGTH;
    }
    ssize_t got = real_read(fd, to, room);
    int asks = got >= GET_LENGTH && memcmp((char *)to + 8, "GET", 3) == 0;
    if (asks && known < CLIENTS && fd < FDS && ++asked[fd] == 2) {
        connections[known++] = fd;
        since_ns = now_ns();
    }
    return got;
}

ssize_t write(int fd, const void *from, size_t length) {
    return is_ours(fd) ? (ssize_t)length : real_write(fd, from, length);
}
