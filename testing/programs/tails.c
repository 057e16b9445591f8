/* How long round trips of 64 bytes take with many threads, a connection each; see tails.sh.
 *
 *   tails server threads|epoll            says its port
 *   tails client PORT THREADS SECONDS     says round trips per second, quantiles and the longest
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 64, WARM = 300, STEPS = 16, BUCKETS = 64 * STEPS };

static void must(int done, const char *what) {
    if (!done) {
        perror(what);
        exit(1);
    }
}

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void no_delay(int s) {
    int one = 1;
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static int echo(int s, int flags) {
    char b[SIZE];
    ssize_t n = recv(s, b, sizeof b, flags);
    return n > 0 && send(s, b, n, MSG_NOSIGNAL) == n;
}

static void *serve_one(void *of) {
    int s = (int)(long)of;
    while (echo(s, MSG_WAITALL)) {}
    close(s);
    return NULL;
}

static void serve_threads(int l) {
    for (;;) {
        int s = accept(l, NULL, NULL);
        must(s >= 0, "accept");
        no_delay(s);
        pthread_t t;
        must(pthread_create(&t, NULL, serve_one, (void *)(long)s) == 0, "pthread_create");
        pthread_detach(t);
    }
}

static void serve_epoll(int l) {
    int e = epoll_create1(0);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = l}, met[64];
    must(epoll_ctl(e, EPOLL_CTL_ADD, l, &ev) == 0, "epoll_ctl");
    for (;;) {
        int n = epoll_wait(e, met, 64, -1);
        must(n >= 0 || errno == EINTR, "epoll_wait");
        for (int i = 0; i < n; i++) {
            if (met[i].data.fd != l) {
                if (!echo(met[i].data.fd, 0)) close(met[i].data.fd);
                continue;
            }
            int s = accept(l, NULL, NULL);
            must(s >= 0, "accept");
            no_delay(s);
            ev.data.fd = s;
            must(epoll_ctl(e, EPOLL_CTL_ADD, s, &ev) == 0, "epoll_ctl");
        }
    }
}

/* Buckets are a sixteenth of a power of two wide. */
static int bucket(double ns) {
    int e = 0;
    for (; ns >= 2 * STEPS; ns /= 2) e++;
    int at = (int)ns - STEPS;
    return e * STEPS + (at < 0 ? 0 : at);
}

static double lowest_ns(int at) {
    return (STEPS + at % STEPS) * (double)(1ul << (at / STEPS));
}

static struct sockaddr_in at;
static double until_ns, longest_ns;
/* The first ones of each connection, which are over TCP, count only among all. */
static unsigned long trips[BUCKETS], timed, all;
static pthread_mutex_t together = PTHREAD_MUTEX_INITIALIZER;

static void *ask(void *unused) {
    (void)unused;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(s, (struct sockaddr *)&at, sizeof at) == 0, "connect");
    no_delay(s);
    char b[SIZE] = {0};
    unsigned long mine[BUCKETS] = {0}, n = 0;
    double longest = 0;
    for (int i = 0;; i++) {
        double start_ns = now_ns();
        if (start_ns > until_ns) break;
        must(send(s, b, SIZE, MSG_NOSIGNAL) == SIZE, "send");
        must(recv(s, b, SIZE, MSG_WAITALL) == SIZE, "recv");
        n++;
        if (i < WARM) continue;
        double took_ns = now_ns() - start_ns;
        mine[bucket(took_ns)]++;
        if (took_ns > longest) longest = took_ns;
    }
    pthread_mutex_lock(&together);
    for (int i = 0; i < BUCKETS; i++) trips[i] += mine[i];
    all += n;
    timed += n > WARM ? n - WARM : 0;
    if (longest > longest_ns) longest_ns = longest;
    pthread_mutex_unlock(&together);
    close(s);
    return NULL;
}

int main(int argc, char **argv) {
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (argc == 3 && strcmp(argv[1], "server") == 0) {
        int l = socket(AF_INET, SOCK_STREAM, 0);
        socklen_t len = sizeof at;
        must(bind(l, (struct sockaddr *)&at, len) == 0, "bind");
        must(listen(l, 1024) == 0, "listen");
        must(getsockname(l, (struct sockaddr *)&at, &len) == 0, "getsockname");
        printf("%d\n", ntohs(at.sin_port));
        fflush(stdout);
        strcmp(argv[2], "epoll") == 0 ? serve_epoll(l) : serve_threads(l);
    }
    if (argc != 5) return 2;
    at.sin_port = htons(atoi(argv[2]));
    int threads = atoi(argv[3]);
    until_ns = now_ns() + atof(argv[4]) * 1e9;
    pthread_t *of = calloc(threads, sizeof *of);
    for (int i = 0; i < threads; i++) must(pthread_create(of + i, NULL, ask, NULL) == 0, "pthread_create");
    for (int i = 0; i < threads; i++) pthread_join(of[i], NULL);
    if (timed == 0) {
        fprintf(stderr, "tails: too few round trips: let it take longer\n");
        return 1;
    }
    printf("%8.0f k/s", all / atof(argv[4]) / 1e3);
    double quantiles[] = {.5, .99, .999, .9999};
    for (int q = 0; q < 4; q++) {
        unsigned long below = 0;
        int i = 0;
        while (i < BUCKETS - 1 && (below += trips[i]) < quantiles[q] * timed) i++;
        printf("  p%g %.1f us", quantiles[q] * 100, lowest_ns(i + 1) / 1e3);
    }
    printf("  longest %.1f ms\n", longest_ns / 1e6);
    return 0;
}
