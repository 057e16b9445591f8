// What memcached takes for itself, as own_time.c for redis: a library that answers for the kernel, to be preloaded in place of libsovia.so. It lets each of 50
// clients ask EACH_KEEPS times, and keeps what they ask; from then on every epoll_wait has one of those requests on each connection at once, every read brings
// it, and every sendmsg is thrown away. So keys and values are those of the load, and as far from the processor. The time of a request goes to standard error,
// every two million. own_time.sh runs it. What the library itself takes is in the figure: some ten nanoseconds, of which most is the copy of the request.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 50, FDS = 4096, EACH = 2000000, EACH_KEEPS = 8000, ROOM = EACH_KEEPS * 1500 };

static struct client {
    char *bytes;
    unsigned ends[EACH_KEEPS], kept, next;
} clients[FDS];
static int connections[CLIENTS], known, full;
static int the_set = -1;
static unsigned long served;
static double since_ns;

static ssize_t (*real_read)(int, void *, size_t);
static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);
static int (*real_wait)(int, struct epoll_event *, int, int);

__attribute__((constructor)) static void begin(void) {
    real_read = dlsym(RTLD_NEXT, "read");
    real_sendmsg = dlsym(RTLD_NEXT, "sendmsg");
    real_wait = dlsym(RTLD_NEXT, "epoll_wait");
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static int replays(void) { return full == CLIENTS; }

static int is_ours(int fd) { return fd >= 0 && fd < FDS && clients[fd].bytes; }

int epoll_wait(int set, struct epoll_event *events, int most, int timeout) {
    if (!replays() || set != the_set) {
        int found = real_wait(set, events, most, timeout);
        for (int i = 0; i < found; i++)
            if (is_ours(events[i].data.fd)) the_set = set;
        return found;
    }
    // libevent begins with room for 32.
    static int next;
    int count = most < CLIENTS ? most : CLIENTS;
    for (int i = 0; i < count; i++) {
        events[i] = (struct epoll_event){.events = EPOLLIN, .data.fd = connections[next]};
        next = (next + 1) % CLIENTS;
    }
    if (served >= EACH) {
        fprintf(stderr, "%.1f ns a request\n", (now_ns() - since_ns) / served);
        served = 0;
    }
    if (served == 0) since_ns = now_ns();
    served += count;
    return count;
}

static ssize_t replay(struct client *client, char *to, size_t room) {
    unsigned nth = client->next;
    unsigned from = nth ? client->ends[nth - 1] : 0;
    client->next = nth + 1 == EACH_KEEPS ? 0 : nth + 1;
    ssize_t length = client->ends[nth] - from;
    if ((size_t)length > room) abort();
    memcpy(to, client->bytes + from, length);
    return length;
}

static void keep(int fd, const char *bytes, ssize_t length) {
    struct client *client = &clients[fd];
    int whole = (memcmp(bytes, "get ", 4) == 0 || memcmp(bytes, "set ", 4) == 0) && bytes[length - 1] == '\n';
    if (!whole || client->kept == EACH_KEEPS) return;
    if (!client->bytes) {
        if (known == CLIENTS || !(client->bytes = malloc(ROOM))) return;
        connections[known++] = fd;
    }
    unsigned from = client->kept ? client->ends[client->kept - 1] : 0;
    if (from + length > ROOM) abort();
    memcpy(client->bytes + from, bytes, length);
    client->ends[client->kept++] = from + length;
    full += client->kept == EACH_KEEPS;
}

ssize_t read(int fd, void *to, size_t room) {
    if (replays() && is_ours(fd)) return replay(&clients[fd], to, room);
    ssize_t got = real_read(fd, to, room);
    if (got > 8 && fd >= 0 && fd < FDS) keep(fd, to, got);
    return got;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    if (!replays() || !is_ours(fd)) return real_sendmsg(fd, message, flags);
    ssize_t all = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++) all += message->msg_iov[i].iov_len;
    return all;
}
