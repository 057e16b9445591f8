// What every program of testing/dualrun begins with: the two ends, the transcript, the side channel, the warm-up.
// ../README.md says how to write one.
#ifndef DUAL_H
#define DUAL_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHARED static __attribute__((unused))

// Far above what a program opens, so that its own numbers are what they would be without us.
enum { CHANNEL = 900, TRANSCRIPT = 901 };

// Scratch memory of the program.
SHARED char buf[1 << 20];

// A value of which the compiler knows nothing: with it, a fortified build cannot settle at compile time that a buffer is
// large enough, and calls the checked alias.
SHARED size_t opaque(size_t value) {
    volatile size_t hidden = value;
    return hidden;
}

#if defined(_FORTIFY_SOURCE)
#define read(fd, to, n) read(fd, to, opaque(n))
#define recv(fd, to, n, flags) recv(fd, to, opaque(n), flags)
#define recvfrom(fd, to, n, flags, name, len) recvfrom(fd, to, opaque(n), flags, name, len)
#define pread(fd, to, n, at) pread(fd, to, opaque(n), at)
#define poll(fds, n, timeout) poll(fds, opaque(n), timeout)
#define ppoll(fds, n, timeout, mask) ppoll(fds, opaque(n), timeout, mask)
#endif

// ---- the transcript

// One line. Whatever differs from run to run (ports, counts that depend on timing) does not belong into it.
SHARED __attribute__((format(printf, 1, 2))) void say(const char *format, ...) {
    int saved = errno;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof line - 2) length = sizeof line - 2;
    line[length++] = '\n';
    for (int done = 0; done < length;) {
        ssize_t wrote = write(TRANSCRIPT, line + done, length - done);
        if (wrote > 0) done += wrote;
        else if (errno != EINTR) _exit(71);
    }
    errno = saved;
}

// The set-up of the program failed: not a result, an error of the test.
SHARED void die(int line, const char *what) {
    fprintf(stderr, "dual: line %d: %s: %s\n", line, what, strerrorname_np(errno));
    fflush(stderr);
    _exit(70);
}

SHARED void say_result(const char *what, long result) {
    if (result == -1) say("%s = -1 %s", what, strerrorname_np(errno));
    else say("%s = %ld", what, result);
}

// Says the call and its result, or the name of its error; the value is the result.
#define TRY(expression)                                                                                                \
    ({                                                                                                                 \
        errno = 0;                                                                                                     \
        long result_ = (long)(expression);                                                                             \
        say_result(#expression, result_);                                                                              \
        result_;                                                                                                       \
    })

// Says the call and whether it failed; for results that differ from run to run.
#define TRY_QUIETLY(expression)                                                                                        \
    ({                                                                                                                 \
        errno = 0;                                                                                                     \
        long result_ = (long)(expression);                                                                             \
        if (result_ == -1) say_result(#expression, result_);                                                           \
        else say("%s succeeds", #expression);                                                                          \
        result_;                                                                                                       \
    })

// What must not fail for the test to make sense. Says nothing.
#define OK(expression)                                                                                                 \
    ({                                                                                                                 \
        errno = 0;                                                                                                     \
        long result_ = (long)(expression);                                                                             \
        if (result_ == -1) die(__LINE__, #expression);                                                                 \
        result_;                                                                                                       \
    })

// The same for functions that return an error number.
#define ZERO(expression)                                                                                               \
    ({                                                                                                                 \
        errno = (expression);                                                                                          \
        if (errno != 0) die(__LINE__, #expression);                                                                    \
    })

// ---- the side channel, between the ends and beside the connection

SHARED void tell_number(uint32_t number) { OK(write(CHANNEL, &number, sizeof number)); }

// What the other end told; -1 if it is no more.
SHARED int64_t await_number(void) {
    uint32_t number;
    char *to = (char *)&number;
    for (size_t have = 0; have < sizeof number;) {
        ssize_t got = read(CHANNEL, to + have, sizeof number - have);
        if (got == 0) return -1;
        if (got > 0) have += got;
        else if (errno != EINTR) return -1;
    }
    return number;
}

SHARED void tell(void) { tell_number(0); }

SHARED void await(void) {
    if (await_number() < 0) die(__LINE__, "the other end is gone");
}

// Both ends are here.
SHARED void meet(void) {
    tell();
    await();
}

// ---- data

SHARED uint64_t digest_more(uint64_t digest, const void *data, size_t length) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < length; i++) digest = (digest ^ bytes[i]) * 0x100000001b3;
    return digest;
}

enum { DIGEST_EMPTY = 7 };

SHARED unsigned long digest(const void *data, size_t length) { return digest_more(DIGEST_EMPTY, data, length); }

// The byte at each place of a stream is known, so that a byte lost, doubled or moved shows.
SHARED unsigned char byte_at(uint64_t place) { return (place * 0x9e3779b97f4a7c15u) >> 53; }

SHARED void fill(void *data, size_t length, uint64_t place) {
    unsigned char *bytes = data;
    for (size_t i = 0; i < length; i++) bytes[i] = byte_at(place + i);
}

SHARED int as_filled(const void *data, size_t length, uint64_t place) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != byte_at(place + i)) return 0;
    return 1;
}

// All of it, or less if the connection ends; -1 at once if nothing was sent.
SHARED ssize_t send_all(int fd, const void *data, size_t length) {
    size_t done = 0;
    while (done < length) {
        ssize_t sent = send(fd, (const char *)data + done, length - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return done > 0 ? (ssize_t)done : -1;
        done += sent;
    }
    return done;
}

SHARED ssize_t recv_all(int fd, void *data, size_t length) {
    size_t done = 0;
    while (done < length) {
        ssize_t got = recv(fd, (char *)data + done, length - done, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return done > 0 ? (ssize_t)done : -1;
        if (got == 0) break;
        done += got;
    }
    return done;
}

SHARED void send_text(int fd, const char *text) {
    if (send_all(fd, text, strlen(text)) != (ssize_t)strlen(text)) die(__LINE__, text);
}

// Says the next `length` bytes.
SHARED void hear(int fd, size_t length) {
    char text[256] = "";
    ssize_t got = recv_all(fd, text, length);
    if (got < 0) say("hear: %s", strerrorname_np(errno));
    else say("hear: \"%.*s\"", (int)got, text);
}

SHARED void send_filled(int fd, size_t total) {
    char *chunk = malloc(16384);
    for (size_t at = 0; at < total;) {
        size_t part = total - at < 16384 ? total - at : 16384;
        fill(chunk, part, at);
        if (send_all(fd, chunk, part) != (ssize_t)part) die(__LINE__, "send_filled");
        at += part;
    }
    free(chunk);
}

SHARED void recv_filled(int fd, size_t total) {
    char *chunk = malloc(16384);
    for (size_t at = 0; at < total;) {
        size_t part = total - at < 16384 ? total - at : 16384;
        if (recv_all(fd, chunk, part) != (ssize_t)part) die(__LINE__, "recv_filled");
        if (!as_filled(chunk, part, at)) die(__LINE__, "recv_filled: other bytes than were sent");
        at += part;
    }
    free(chunk);
}

// Reads to the end, and says how much there was, whether it was what `send_filled` sends, and what the end was.
SHARED void recv_to_end(int fd) {
    char *chunk = malloc(65536);
    uint64_t at = 0;
    int same = 1;
    ssize_t got;
    for (;;) {
        got = recv(fd, chunk, 65536, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        same = same && as_filled(chunk, got, at);
        at += got;
    }
    say("to the end: %lu bytes, %s, then %s", (unsigned long)at, same ? "as sent" : "not as sent",
        got == 0 ? "end" : strerrorname_np(errno));
    free(chunk);
}

// Waits until so many bytes can be read. One `send` of another process may arrive later than it returns.
SHARED void settle(int fd, int length) {
    int have;
    do {
        OK(ioctl(fd, FIONREAD, &have));
        if (have < length) sched_yield();
    } while (have < length);
}

// Waits until the other end has shut down its side, or all of it. The kernel shows an end before it wakes for it, twice; who asks for the bytes that are
// there waits until it has.
SHARED void settle_end(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLRDHUP};
    while (poll(&one, 1, -1) < 0 && errno == EINTR) {}
    int have;
    OK(ioctl(fd, FIONREAD, &have));
}

// Names of bits of `poll` and `epoll`, which are the same.
SHARED const char *events(unsigned bits) {
    static __thread char text[8][160];
    static __thread int turn;
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {{POLLIN, "IN"},         {POLLPRI, "PRI"},       {POLLOUT, "OUT"},       {POLLERR, "ERR"},
                 {POLLHUP, "HUP"},       {POLLNVAL, "NVAL"},     {POLLRDNORM, "RDNORM"}, {POLLRDBAND, "RDBAND"},
                 {POLLWRNORM, "WRNORM"}, {POLLWRBAND, "WRBAND"}, {POLLMSG, "MSG"},       {POLLRDHUP, "RDHUP"}};
    char *to = text[turn = (turn + 1) % 8];
    strcpy(to, bits == 0 ? "nothing" : "");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!(bits & names[i].bit)) continue;
        if (*to) strcat(to, "+");
        strcat(to, names[i].name);
        bits &= ~names[i].bit;
    }
    if (bits) sprintf(to + strlen(to), "+0x%x", bits);
    return to;
}

// Says what `poll` finds on one fd.
SHARED void say_poll(const char *when, int fd, short wanted, int timeout) {
    struct pollfd one = {.fd = fd, .events = wanted, .revents = -1};
    int count = poll(&one, 1, timeout);
    if (count < 0) say("%s: poll %s", when, strerrorname_np(errno));
    else say("%s: poll %d %s", when, count, events((unsigned short)one.revents));
}

// Whether a connection that has just been full has room again. The kernel's buffers grow while they are filled, and an acknowledgement may be 40 ms late.
SHARED int is_room_to_come(int fd) {
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    return OK(poll(&room, 1, 150)) == 1;
}

// ---- processes and threads

SHARED pthread_t start(void *(*run)(void *), void *with) {
    pthread_t thread;
    ZERO(pthread_create(&thread, NULL, run, with));
    return thread;
}

SHARED void *finish(pthread_t thread) {
    void *result;
    ZERO(pthread_join(thread, &result));
    return result;
}

// Waits until a thread sleeps in the kernel. Whatever it waits for may spin first, so it must look asleep for a while.
SHARED void wait_asleep(int tid) {
    char path[64], stat[512];
    snprintf(path, sizeof path, "/proc/%d/stat", tid);
    for (int asleep = 0; asleep < 20;) {
        int fd = OK(open(path, O_RDONLY | O_CLOEXEC));
        ssize_t got = OK(read(fd, stat, sizeof stat - 1));
        close(fd);
        stat[got] = 0;
        const char *after = strrchr(stat, ')');
        asleep = after && after[2] == 'S' ? asleep + 1 : 0;
        sched_yield();
    }
}

// How a child ended.
SHARED void say_child(const char *who, pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) die(__LINE__, "waitpid");
    if (WIFEXITED(status)) say("%s: exit %d", who, WEXITSTATUS(status));
    else say("%s: signal %d", who, WTERMSIG(status));
}

SHARED void handle(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    OK(sigaction(signal, &action, NULL));
}

// ---- connections

static int is_client, is_warm, is_subject;

SHARED socklen_t loopback(int family, in_port_t port, struct sockaddr_storage *address) {
    memset(address, 0, sizeof *address);
    if (family == AF_INET) {
        *(struct sockaddr_in *)address = (struct sockaddr_in){
            .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        return sizeof(struct sockaddr_in);
    }
    *(struct sockaddr_in6 *)address =
        (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    return sizeof(struct sockaddr_in6);
}

// In network order.
SHARED in_port_t port_of(int fd) {
    struct sockaddr_in6 address;
    socklen_t length = sizeof address;
    OK(getsockname(fd, (struct sockaddr *)&address, &length));
    return address.sin6_port; // where IPv4 has it, too
}

SHARED int bound(int family) {
    struct sockaddr_storage address;
    int fd = OK(socket(family, SOCK_STREAM, 0));
    socklen_t length = loopback(family, 0, &address);
    OK(bind(fd, (struct sockaddr *)&address, length));
    return fd;
}

SHARED int listening(int family) {
    int fd = bound(family);
    OK(listen(fd, 64));
    return fd;
}

SHARED int connect_port(int family, in_port_t port) {
    struct sockaddr_storage address;
    int fd = OK(socket(family, SOCK_STREAM, 0));
    socklen_t length = loopback(family, port, &address);
    OK(connect(fd, (struct sockaddr *)&address, length));
    return fd;
}

// The server listens and tells the port; each end has a connection then.
SHARED int connected_by(int family) {
    if (is_client) return connect_port(family, await_number());
    int listener = listening(family);
    tell_number(port_of(listener));
    int fd = OK(accept(listener, NULL, NULL));
    OK(close(listener));
    return fd;
}

enum { WARM_TURNS = 64, WARM_BYTES = 256 * 1024 };

// Gives sovia every reason to upgrade a connection: small requests and answers, then a good deal each way.
SHARED void warm_up(int fd) {
    if (!is_warm) return;
    char word[16];
    for (int turn = 0; turn < WARM_TURNS; turn++) {
        if (is_client) send_all(fd, "are you warm...?", 16);
        if (recv_all(fd, word, 16) != 16) die(__LINE__, "warm_up");
        if (!is_client) send_all(fd, "I am warm enough", 16);
    }
    if (is_client) send_filled(fd, WARM_BYTES);
    recv_filled(fd, WARM_BYTES);
    if (!is_client) send_filled(fd, WARM_BYTES);
    meet();
}

SHARED int connected(void) {
    int fd = connected_by(AF_INET);
    warm_up(fd);
    return fd;
}

// Two connections; both ends have them in the same order.
SHARED void connected_twice(int fds[2]) {
    fds[0] = connected();
    fds[1] = connected();
}

// ---- beginnings

SHARED void begin(int argc, char **argv) {
    if (argc < 2) exit(64);
    is_client = strcmp(argv[1], "client") == 0;
    is_warm = atoi(getenv("DUAL_WARM") ?: "0");
    is_subject = strcmp(getenv("DUAL_SUBJECT") ?: "client", argv[1]) == 0;
    OK(dup3(STDIN_FILENO, CHANNEL, O_CLOEXEC));
    OK(dup2(STDOUT_FILENO, TRANSCRIPT));
    int null = OK(open("/dev/null", O_RDWR));
    OK(dup2(null, STDIN_FILENO));
    OK(dup2(null, STDOUT_FILENO));
    OK(close(null));
}

// A program of a subject, which shows the behaviour, and a partner; each gets a connection. Either may be the client.
#define SUBJECT_AND_PARTNER(subject, partner)                                                                          \
    int main(int argc, char **argv) {                                                                                  \
        begin(argc, argv);                                                                                             \
        int fd = connected();                                                                                          \
        if (is_subject) subject(fd);                                                                                   \
        else partner(fd);                                                                                              \
        return 0;                                                                                                      \
    }

// A program whose ends make their connections themselves.
#define SERVER_AND_CLIENT(server, client)                                                                              \
    int main(int argc, char **argv) {                                                                                  \
        begin(argc, argv);                                                                                             \
        if (is_client) client();                                                                                       \
        else server();                                                                                                 \
        return 0;                                                                                                      \
    }

// The same, where the subject may be the client or the server.
#define SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)                                                              \
    int main(int argc, char **argv) {                                                                                  \
        begin(argc, argv);                                                                                             \
        if (is_subject) subject();                                                                                     \
        else partner();                                                                                                \
        return 0;                                                                                                      \
    }

#endif
