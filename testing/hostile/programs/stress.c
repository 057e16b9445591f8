// Many connections between two processes, each served in another way, with random sizes and pauses: requests and their echoes. A
// watchdog ends the run when a connection has not moved for long, and says where all stood.
//
//   stress SECONDS SEED CONNECTIONS PATIENCE
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loopback.h"

enum way { BLOCKING, POLL, LEVEL, EDGE, ONCE, PAIR, WAYS };
static const char *names[] = {"blocking", "poll", "level", "edge", "once", "pair"};
enum { MOST = 512, LARGEST = 900 << 10, ROOM = 64 << 10 };

// What the watchdog reads: shared by all processes.
struct progress {
    volatile uint64_t sent[2], received[2], rounds;
    volatile int client, server, ended[2];
};
static struct progress *progress;
static volatile int *over;
static int connections;
static uint64_t seed;

static void die(const char *what) {
    fprintf(stderr, "stress: %s: %s\n", what, strerror(errno));
    _exit(3);
}
#define OK(call)                                                                                                       \
    ({                                                                                                                 \
        long result_ = (long)(call);                                                                                   \
        if (result_ == -1) die(#call);                                                                                 \
        result_;                                                                                                       \
    })

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
static uint64_t draw(uint64_t *state) { return mix((*state)++); }

static unsigned char byte_at(int id, uint64_t place) { return ((place + id) * 0x9e3779b97f4a7c15u) >> 53; }
static void fill(int id, unsigned char *to, size_t n, uint64_t place) {
    for (size_t i = 0; i < n; i++) to[i] = byte_at(id, place + i);
}
static void check(int id, int end, const unsigned char *from, size_t n, uint64_t place) {
    for (size_t i = 0; i < n; i++)
        if (from[i] != byte_at(id, place + i)) {
            fprintf(stderr, "stress: connection %d, end %d: wrong byte at %lu\n", id, end, (unsigned long)(place + i));
            _exit(4);
        }
}

// One end of a connection.
struct end {
    int fd, id, is_client;
    uint64_t random, sent, received;
    // The client: how far it will have sent and received when this round is over. The server: what it has received, it sends.
    uint64_t goal;
    int waits_for_room, has_finished;
    uint64_t rests_until;
};

struct loop {
    enum way way;
    int set, count;
    struct end *ends[MOST];
    struct pollfd fds[MOST];
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static uint64_t size_of_round(uint64_t *random) {
    switch (draw(random) % 32) {
    case 0: return 1 + draw(random) % LARGEST;
    case 1 ... 4: return 1 + draw(random) % 40000;
    default: return 1 + draw(random) % 200;
    }
}
// How long a client does nothing between two rounds, in nanoseconds.
static uint64_t pause_of_round(uint64_t *random) {
    switch (draw(random) % 16) {
    case 0: return draw(random) % 3000000;
    case 1 ... 3: return draw(random) % 100000;
    case 4 ... 6: return draw(random) % 5000;
    default: return 0;
    }
}
static void note(struct end *end) {
    progress[end->id].sent[!end->is_client] = end->sent;
    progress[end->id].received[!end->is_client] = end->received;
}

// Moves what can be moved without waiting; 0 when the connection is over.
static int move(struct end *end) {
    static __thread unsigned char buffer[ROOM];
    int again = 1;
    while (again) {
        again = 0;
        uint64_t wanted = !end->is_client ? ROOM : end->has_finished ? 1 : end->goal - end->received;
        if (wanted > 0) {
            size_t most = draw(&end->random) % 8 == 0 ? 1 + draw(&end->random) % 300 : ROOM;
            if (end->is_client && most > wanted) most = wanted;
            ssize_t got = recv(end->fd, buffer, most, MSG_DONTWAIT);
            if (got == 0) return 0;
            if (got < 0 && errno != EAGAIN && errno != EINTR) die("recv");
            if (got > 0) {
                check(end->id, !end->is_client, buffer, got, end->received);
                end->received += got;
                again = 1;
            }
        }
        uint64_t until = end->is_client ? end->goal : end->received;
        while (end->sent < until) {
            size_t n = until - end->sent < ROOM ? until - end->sent : ROOM;
            fill(end->id, buffer, n, end->sent);
            ssize_t put = send(end->fd, buffer, n, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (put < 0 && (errno == EAGAIN || errno == EINTR)) {
                end->waits_for_room = 1;
                break;
            }
            if (put < 0) die("send");
            end->sent += put;
            end->waits_for_room = 0;
            again = 1;
        }
        note(end);
    }
    return 1;
}

// A client whose echo is complete begins another round, at once or later.
static void begin_round(struct end *end) {
    while (end->is_client && !end->has_finished && end->received == end->goal) {
        if (*over && progress[end->id].rounds > 20) {
            OK(shutdown(end->fd, SHUT_WR));
            end->has_finished = 1;
            return;
        }
        if (end->rests_until == 0) {
            uint64_t pause = pause_of_round(&end->random);
            if (pause > 0) {
                end->rests_until = now_ns() + pause;
                return;
            }
        }
        if (end->rests_until > now_ns()) return;
        end->rests_until = 0;
        progress[end->id].rounds++;
        end->goal += size_of_round(&end->random);
    }
}

static void *block(void *with) {
    struct end *end = with;
    static __thread unsigned char buffer[ROOM];
    if (!end->is_client) {
        for (;;) {
            ssize_t got = recv(end->fd, buffer, 1 + draw(&end->random) % ROOM, 0);
            if (got == 0) break;
            if (got < 0) die("recv");
            check(end->id, 1, buffer, got, end->received);
            end->received += got;
            note(end);
            for (ssize_t put = 0; put < got;) {
                ssize_t n = send(end->fd, buffer + put, got - put, MSG_NOSIGNAL);
                if (n < 0) die("send");
                put += n, end->sent += n;
                note(end);
            }
        }
        progress[end->id].ended[1] = 1;
        close(end->fd);
        return NULL;
    }
    while (!(*over && progress[end->id].rounds > 20)) {
        // Not more than both directions hold without anybody reading.
        uint64_t n = size_of_round(&end->random) % 100000 + 1;
        uint64_t pause = pause_of_round(&end->random);
        if (pause > 0) nanosleep(&(struct timespec){0, pause}, NULL);
        end->goal += n;
        while (end->sent < end->goal) {
            size_t part = end->goal - end->sent < ROOM ? end->goal - end->sent : ROOM;
            fill(end->id, buffer, part, end->sent);
            ssize_t put = send(end->fd, buffer, part, MSG_NOSIGNAL);
            if (put < 0) die("send");
            end->sent += put;
            note(end);
        }
        while (end->received < end->goal) {
            size_t most = end->goal - end->received < ROOM ? end->goal - end->received : ROOM;
            ssize_t got = recv(end->fd, buffer, most, 0);
            if (got <= 0) die("recv of a client");
            check(end->id, 0, buffer, got, end->received);
            end->received += got;
            note(end);
        }
        progress[end->id].rounds++;
    }
    OK(shutdown(end->fd, SHUT_WR));
    if (recv(end->fd, buffer, 1, 0) != 0) die("no end");
    progress[end->id].ended[0] = 1;
    close(end->fd);
    return NULL;
}

static uint32_t wanted(struct loop *loop, struct end *end) {
    switch (loop->way) {
    case EDGE: return EPOLLIN | EPOLLOUT | EPOLLET;
    case ONCE: return EPOLLIN | (end->waits_for_room ? EPOLLOUT : 0) | EPOLLONESHOT;
    default: return EPOLLIN | (end->waits_for_room ? EPOLLOUT : 0);
    }
}

// One event, or a rest that is over: everything that can be done.
static void serve(struct loop *loop, struct end *end) {
    int waited = end->waits_for_room;
    int goes_on = 1;
    for (;;) {
        begin_round(end);
        goes_on = move(end);
        if (!goes_on || !end->is_client || end->has_finished || end->received < end->goal || end->rests_until > 0) break;
    }
    if (!goes_on) {
        if (loop->way != POLL) OK(epoll_ctl(loop->set, EPOLL_CTL_DEL, end->fd, NULL));
        progress[end->id].ended[!end->is_client] = 1;
        close(end->fd);
        end->fd = -1;
        __atomic_fetch_sub(&loop->count, 1, __ATOMIC_SEQ_CST);
        return;
    }
    if (loop->way == ONCE || ((loop->way == LEVEL || loop->way == PAIR) && waited != end->waits_for_room)) {
        struct epoll_event event = {.events = wanted(loop, end), .data.ptr = end};
        OK(epoll_ctl(loop->set, EPOLL_CTL_MOD, end->fd, &event));
    }
}

// The pair has two threads and two sets, one in the other.
static void *turn(void *with) {
    struct loop *loop = with;
    int all = loop->count, outer = -1;
    uint64_t random = mix(seed + loop->way + getpid());
    if (loop->way == PAIR) {
        outer = OK(epoll_create1(EPOLL_CLOEXEC));
        OK(epoll_ctl(outer, EPOLL_CTL_ADD, loop->set, &(struct epoll_event){.events = EPOLLIN}));
    }
    while (__atomic_load_n(&loop->count, __ATOMIC_SEQ_CST) > 0) {
        uint64_t now = now_ns(), first = UINT64_MAX;
        for (int i = 0; i < all; i++) {
            struct end *end = loop->ends[i];
            if (end->fd < 0 || !end->is_client) continue;
            if (end->rests_until > 0 && end->rests_until <= now) {
                end->rests_until = 0;
                progress[end->id].rounds++;
                end->goal += size_of_round(&end->random);
                serve(loop, end);
            }
            if (end->fd >= 0 && end->rests_until > 0 && end->rests_until < first) first = end->rests_until;
        }
        if (__atomic_load_n(&loop->count, __ATOMIC_SEQ_CST) == 0) break;
        now = now_ns();
        // Now and then a look that does not wait, as many programs do.
        int timeout = first == UINT64_MAX ? -1 : first <= now ? 0 : (int)((first - now) / 1000000) + 1;
        if (draw(&random) % 64 == 0) timeout = 0;
        if (loop->way == POLL) {
            for (int i = 0; i < all; i++)
                loop->fds[i] = (struct pollfd){loop->ends[i]->fd, POLLIN | (loop->ends[i]->waits_for_room ? POLLOUT : 0), 0};
            OK(poll(loop->fds, all, timeout));
            for (int i = 0; i < all; i++)
                if (loop->ends[i]->fd >= 0 && loop->fds[i].revents) serve(loop, loop->ends[i]);
            continue;
        }
        struct epoll_event events[16];
        if (outer >= 0) {
            struct epoll_event event;
            if (OK(epoll_wait(outer, &event, 1, timeout)) == 0) continue;
            timeout = 0;
        }
        int found = OK(epoll_wait(loop->set, events, 1 + draw(&random) % 16, timeout));
        for (int i = 0; i < found; i++) serve(loop, events[i].data.ptr);
    }
    return NULL;
}

static struct end *make_end(int fd, int id, int is_client) {
    struct end *end = calloc(1, sizeof *end);
    *end = (struct end){.fd = fd, .id = id, .is_client = is_client, .random = mix(seed * 2 + id * 1000003ull + is_client)};
    return end;
}

static void run(struct loop *loops, struct end **ends, enum way *ways, int is_client) {
    static pthread_t threads[MOST + WAYS];
    int started = 0;
    for (int way = POLL; way < WAYS; way++) {
        loops[way].way = way;
        loops[way].set = way == POLL ? -1 : OK(epoll_create1(EPOLL_CLOEXEC));
    }
    for (int id = 0; id < connections; id++) {
        struct end *end = ends[id];
        struct loop *loop = &loops[ways[id]];
        if (ways[id] == BLOCKING) {
            pthread_create(&threads[started++], NULL, block, end);
            continue;
        }
        loop->ends[loop->count++] = end;
        // Due at once.
        end->rests_until = is_client;
        if (ways[id] != POLL)
            OK(epoll_ctl(loop->set, EPOLL_CTL_ADD, end->fd,
                         &(struct epoll_event){.events = wanted(loop, end), .data.ptr = end}));
    }
    for (int way = POLL; way < WAYS; way++)
        if (loops[way].count > 0) pthread_create(&threads[started++], NULL, turn, &loops[way]);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

static void be(int is_client, int listener, struct sockaddr_in *address) {
    static struct loop loops[WAYS];
    static struct end *ends[MOST];
    static enum way ways[MOST];
    for (int i = 0; i < connections; i++) {
        int fd, id = i;
        if (is_client) {
            fd = connect_to(address);
            if (send(fd, &id, sizeof id, 0) != sizeof id) die("send");
        } else {
            fd = OK(accept(listener, NULL, NULL));
            if (recv(fd, &id, sizeof id, MSG_WAITALL) != sizeof id) die("recv");
        }
        int one = 1;
        if (id % 3) OK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
        ways[id] = is_client ? progress[id].client : progress[id].server;
        if (ways[id] != BLOCKING && id % 2) OK(fcntl(fd, F_SETFL, O_NONBLOCK));
        ends[id] = make_end(fd, id, is_client);
    }
    run(loops, ends, ways, is_client);
    _exit(0);
}

static void report(void) {
    for (int id = 0; id < connections; id++) {
        struct progress *p = &progress[id];
        fprintf(stderr, "%3d client %-8s server %-8s rounds %lu client sent %lu received %lu%s, server received %lu sent %lu%s\n", id,
                names[p->client], names[p->server], (unsigned long)p->rounds, (unsigned long)p->sent[0],
                (unsigned long)p->received[0], p->ended[0] ? " ended" : "", (unsigned long)p->received[1],
                (unsigned long)p->sent[1], p->ended[1] ? " ended" : "");
    }
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    int seconds = atoi(argv[1]), patience = atoi(argv[4]);
    seed = strtoull(argv[2], NULL, 0);
    connections = atoi(argv[3]);
    if (connections > MOST) return 2;
    size_t len = sizeof *progress * MOST + 4096;
    progress = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED) die("mmap");
    over = (int *)(progress + MOST);
    for (int id = 0; id < connections; id++) {
        uint64_t random = mix(seed ^ (id * 77777ull));
        progress[id].client = draw(&random) % WAYS;
        progress[id].server = draw(&random) % WAYS;
    }
    struct sockaddr_in address;
    int listener = listen_on_loopback(&address, MOST);
    pid_t pids[2];
    for (int is_client = 0; is_client < 2; is_client++) {
        pids[is_client] = OK(fork());
        if (pids[is_client] == 0) be(is_client, listener, &address);
    }
    close(listener);
    uint64_t last[MOST] = {0}, since[MOST], began = now_ns();
    for (int id = 0; id < connections; id++) since[id] = began;
    int left = 2, status = 0;
    while (left > 0) {
        int how;
        pid_t ended = waitpid(-1, &how, WNOHANG);
        if (ended > 0) {
            left--;
            pids[pids[1] == ended] = 0;
            if (!WIFEXITED(how) || WEXITSTATUS(how)) {
                fprintf(stderr, "stress: a process ended with %x\n", how);
                status = 5;
                break;
            }
            continue;
        }
        usleep(50000);
        if (now_ns() - began > seconds * 1000000000ull) *over = 1;
        for (int id = 0; id < connections; id++) {
            struct progress *p = &progress[id];
            uint64_t sum = p->sent[0] + p->sent[1] + p->received[0] + p->received[1] + p->rounds;
            if (sum != last[id]) last[id] = sum, since[id] = now_ns();
            else if (left == 2 && !*over && now_ns() - since[id] > patience * 1000000000ull) {
                fprintf(stderr, "stress: connection %d stands still\n", id);
                status = 6;
            }
            if (now_ns() - since[id] > (seconds + 3ull * patience) * 1000000000ull) status = 6;
        }
        if (status) break;
    }
    if (status) {
        report();
        fprintf(stderr, "stress: processes %d and %d\n", pids[0], pids[1]);
        if (getenv("STRESS_KEEP")) pause();
        for (int i = 0; i < 2; i++)
            if (pids[i] > 0) kill(pids[i], SIGKILL);
        return status;
    }
    uint64_t rounds = 0, bytes = 0;
    for (int id = 0; id < connections; id++) rounds += progress[id].rounds, bytes += progress[id].received[0];
    printf("rounds %lu bytes %lu\n", (unsigned long)rounds, (unsigned long)bytes);
    return 0;
}
