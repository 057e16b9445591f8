// What ends.c knows of its two ends, in memory that all processes share, and the bytes they send.
#ifndef ENDS_H
#define ENDS_H

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum move { EXEC_FOLLOWED, EXEC_STRANGER, FORK, PASS_STRANGER, PASS_ITSELF, DUP, MOVES };
// What an end does now, if it does not move.
enum { SENDING = 100, RECEIVING, WAITING, SHUTTING, CLOSING };
enum { MOVES_MOST = 3, PARTS_MOST = 12, MOST = 200 << 10, RUN_FD = 700 };

// An end lives on in whoever gets its connection, so all that it knows is here.
struct end {
    // What it will have sent, what it is about to have sent, has sent and has received.
    volatile uint64_t total, promised, sent, received;
    uint64_t random, at[MOVES_MOST];
    enum move what[MOVES_MOST];
    int next, is_shut;
    volatile int moves, mapped, failed, failed_receiving, went_back, ended, is_done, doing;
};

static struct run {
    uint64_t seed, lengths[PARTS_MOST], kill_at, kill_late;
    int is_strict, parts, victim;
    volatile int killed, lost, cut, failed;
    struct end ends[2];
} *run;

static int which;
static struct end *me, *peer;
static unsigned char buffer[MOST];

static void report(const pid_t *pids) {
    fprintf(stderr, "ends: seed %lu, %s, victim %d, killed %d\n", (unsigned long)run->seed, run->is_strict ? "strict" : "free",
            run->victim, run->killed);
    for (int index = 0; index < 2; index++) {
        struct end *end = &run->ends[index];
        fprintf(stderr, "  end %d (%d): total %lu sent %lu received %lu, moves %d (last %d), mapped %d failed %d ended %d shut %d doing %d\n",
                index, pids == NULL ? 0 : pids[index], (unsigned long)end->total, (unsigned long)end->sent,
                (unsigned long)end->received, end->moves, end->next > 0 ? (int)end->what[end->next - 1] : -1, end->mapped,
                end->failed, end->ended, end->is_shut, end->doing);
    }
}

static void die(const char *what) {
    fprintf(stderr, "ends: end %d: %s: %s\n", which, what, strerror(errno));
    _exit(3);
}
static void wrong(const char *what) {
    fprintf(stderr, "ends: end %d: %s\n", which, what);
    _exit(4);
}
#define OK(call)                                                                                                       \
    ({                                                                                                                 \
        long result_ = (long)(call);                                                                                   \
        if (result_ == -1) die(#call);                                                                                 \
        result_;                                                                                                       \
    })

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
static uint64_t draw(uint64_t *state) { return mix((*state)++); }
static uint64_t pick(uint64_t end) { return draw(&me->random) % end; }

// Some length from 1 to `most`, and to the buffer's: small ones, middle ones, large ones.
static size_t size_of(size_t most) {
    static const size_t ends[] = {200, 5000, 70000, MOST};
    size_t end = ends[pick(4)];
    if (end > most) end = most;
    return 1 + pick(end);
}

// Each place of each direction has its byte.
static unsigned char byte_at(uint64_t place, int direction) {
    uint64_t x = (place * 2 + direction) * 0x9e3779b97f4a7c15u;
    return ((x ^ (x >> 31)) * 0x94d049bb133111ebu) >> 56;
}
static void fill(unsigned char *to, size_t n, uint64_t place, int direction) {
    for (size_t i = 0; i < n; i++) to[i] = byte_at(place + i, direction);
}
// Where in the stream the wrong bytes would be right.
static void tell_wrong(const unsigned char *from, size_t i, size_t n, uint64_t place) {
    fprintf(stderr, "ends: end %d: a wrong byte at %lu, %lu into a part of %lu:", which, (unsigned long)(place + i), (unsigned long)i,
            (unsigned long)n);
    for (size_t j = i; j < n && j < i + 8; j++) fprintf(stderr, " %02x", from[j]);
    for (uint64_t at = 0, found = 0; n - i >= 8 && at < peer->promised && found < 4; at++) {
        int same = 0;
        while (same < 8 && from[i + same] == byte_at(at + same, !which)) same++;
        if (same == 8 && ++found) fprintf(stderr, ", which belongs to %lu", (unsigned long)at);
    }
    fprintf(stderr, "\n");
    _exit(4);
}
static void check(const unsigned char *from, size_t n, uint64_t place) {
    if (place + n > peer->promised) wrong("more came than was sent");
    for (size_t i = 0; i < n; i++)
        if (from[i] != byte_at(place + i, !which)) {
            tell_wrong(from, i, n, place);
        }
}

#endif
