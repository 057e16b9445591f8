/* Death of the peer, fork, exit without close and after it, close_range. */
#define _GNU_SOURCE
#include <signal.h>
#include "test.h"

#include <poll.h>
#include <pthread.h>

static char memory[100000];

static void die(int fd, int mode)
{
    convert(fd, mode);
    CHECK(write(fd, "last", 4) == 4);
    kill(getpid(), SIGKILL);
}

static void survive(int fd, int mode)
{
    struct sovia_segment segment;
    struct sovia_completion completions[2];
    char bytes[8];
    struct pollfd entry;
    convert(fd, mode);
    signal(SIGPIPE, SIG_IGN);
    segment.address = memory;
    segment.length = sizeof memory;
    MUST(sovia_register(fd, memory, sizeof memory, SOVIA_WRITE, &segment.region));
    if (sovia_post_recv(fd, &segment, 1, 1) == 0) {
        CHECK(sovia_wait(fd, completions, 1, 20000) == 1);
        CHECK(completions[0].id == 1 && completions[0].error == ECONNRESET);
    }
    entry.fd = fd;
    entry.events = POLLIN;
    CHECK(poll(&entry, 1, 20000) == 1);
    CHECK(recv(fd, bytes, 4, MSG_WAITALL) == 4 && memcmp(bytes, "last", 4) == 0);
    FAILS(read(fd, bytes, 1), ECONNRESET);
    CHECK(read(fd, bytes, 1) == 0);
    FAILS(write(fd, "x", 1), EPIPE);
    FAILS(sovia_post_send(fd, &segment, 1, 2), EPIPE);
    MUST(sovia_deregister(fd, segment.region));
}

static void fork_there(int fd, int mode)
{
    char byte;
    int status, kept;
    pid_t pid;
    convert(fd, mode);
    MUST(kept = dup(fd));
    MUST(pid = fork());
    if (pid == 0) {
        /* The connection is the parent's. */
        FAILS(read(fd, &byte, 1), ENOTCONN);
        FAILS(send(fd, "x", 1, MSG_NOSIGNAL), ENOTCONN);
        FAILS(sovia_completion_fd(fd), ENOTCONN);
        MUST(close(fd));
        /* And it may have its own, whatever the parent's threads were about. */
        FAILS(read(kept, &byte, 1), ENOTCONN);
        both(mode, survive, die);
        FAILS(read(kept, &byte, 1), ENOTCONN);
        FAILS(sovia_completion_fd(kept), ENOTCONN);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(write(fd, "y", 1) == 1);
    CHECK(read(fd, &byte, 1) == 1 && byte == 'z');
    MUST(close(kept));
}

static void wait_there(int fd, int mode)
{
    char byte;
    convert(fd, mode);
    CHECK(read(fd, &byte, 1) == 1 && byte == 'y');
    CHECK(write(fd, "z", 1) == 1);
    CHECK(read(fd, &byte, 1) == 0);
}

static void leave(int fd, int mode)
{
    convert(fd, mode);
    CHECK(write(fd, memory, sizeof memory) == sizeof memory);
    exit(0);
}

static void read_to_end(int fd, int mode)
{
    size_t got = 0;
    ssize_t n;
    convert(fd, mode);
    while ((n = read(fd, memory, sizeof memory)) > 0) got += (size_t)n;
    CHECK(n == 0 && got == sizeof memory);
}

static char much[399999];

static void close_and_leave(int fd, int mode)
{
    convert(fd, mode);
    CHECK(write(fd, much, sizeof much) == sizeof much);
    MUST(close(fd));
    exit(0);
}

/* Before the first byte is read the process that sent it has ended. */
static void read_when_it_has_left(int fd, int mode)
{
    size_t got = 0;
    ssize_t n;
    siginfo_t info;
    convert(fd, mode);
    MUST(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT));
    while ((n = read(fd, much, sizeof much)) > 0) got += (size_t)n;
    CHECK(n == 0 && got == sizeof much);
}

static void reset_over_unread(int fd, int mode)
{
    char byte;
    convert(fd, mode);
    CHECK(recv(fd, &byte, 1, MSG_PEEK) == 1);
    CHECK(write(fd, "last", 4) == 4);
    MUST(close(fd));
}

static void reset_at_once(int fd, int mode)
{
    struct linger none = { 1, 0 };
    char byte;
    convert(fd, mode);
    MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none));
    CHECK(read(fd, &byte, 1) == 1);
    MUST(close(fd));
}

static void hear_of_reset(int fd, int mode)
{
    char bytes[8];
    ssize_t n;
    convert(fd, mode);
    CHECK(write(fd, "u", 1) == 1);
    /* What was sent before may come. */
    while ((n = read(fd, bytes, sizeof bytes)) > 0) continue;
    CHECK(n == -1 && errno == ECONNRESET);
    CHECK(read(fd, bytes, 1) == 0);
}

static void *await_ever(void *fd)
{
    struct sovia_completion completion;
    CHECK(sovia_wait(*(int *)fd, &completion, 1, -1) == -1);
    /* Which, depends on whether it came before the close, amid it or after. */
    CHECK(errno == ECANCELED || errno == EOPNOTSUPP || errno == EBADF);
    return NULL;
}

static void close_meanwhile(int fd, int mode)
{
    pthread_t thread;
    convert(fd, mode);
    CHECK(pthread_create(&thread, NULL, await_ever, &fd) == 0);
    MUST(close(fd));
    CHECK(pthread_join(thread, NULL) == 0);
}

static void await_end(int fd, int mode)
{
    struct sovia_completion completion;
    convert(fd, mode);
    FAILS(sovia_wait(fd, &completion, 1, -1), ESHUTDOWN);
}

static volatile sig_atomic_t rung;

static void ring(int number)
{
    (void)number;
    rung = 1;
}

static void be_interrupted(int fd, int mode)
{
    struct sigaction action;
    char byte;
    memset(&action, 0, sizeof action);
    action.sa_handler = ring;
    action.sa_flags = SA_RESTART;
    MUST(sigaction(SIGUSR1, &action, NULL));
    convert(fd, mode);
    CHECK(write(fd, "r", 1) == 1);
    CHECK(read(fd, &byte, 1) == 1 && byte == 'x');
    CHECK(rung);
}

static void interrupt(int fd, int mode)
{
    char byte, state = 0;
    char name[64];
    convert(fd, mode);
    CHECK(read(fd, &byte, 1) == 1 && byte == 'r');
    snprintf(name, sizeof name, "/proc/%d/stat", (int)getppid());
    while (state != 'S') {
        FILE *stat = fopen(name, "r");
        CHECK(stat != NULL && fscanf(stat, "%*d (%*[^)]) %c", &state) == 1);
        fclose(stat);
    }
    MUST(kill(getppid(), SIGUSR1));
    CHECK(write(fd, "x", 1) == 1);
}

int main(int count, char **arguments)
{
    int round, mode = mode_of(count > 1 ? arguments[1] : "vi");
    both(mode, survive, die);
    both(mode, wait_there, fork_there);
    both(mode, read_to_end, leave);
    for (round = 0; round < 12; round++) both(mode, read_when_it_has_left, close_and_leave);
    both(mode, hear_of_reset, reset_over_unread);
    both(mode, hear_of_reset, reset_at_once);
    both(mode, await_end, close_meanwhile);
    both(mode, be_interrupted, interrupt);
    return 0;
}
