/* Streams, sendfile and splice on a converted socket, and what the option says of other descriptors. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/sendfile.h>
#include "test.h"

#include <pthread.h>
#include <sys/stat.h>

static void echo(int fd, int mode)
{
    char bytes[64];
    ssize_t n;
    convert(fd, mode);
    while ((n = read(fd, bytes, sizeof bytes)) > 0) CHECK(write(fd, bytes, (size_t)n) == n);
    CHECK(n == 0);
}

/* A connection has no place in a file that the C library could find: what copies by the kernel says so. */
static void is_refused(int fd)
{
    int file;
    MUST(file = open("/proc/self/exe", O_RDONLY));
    FAILS(sendfile(fd, file, NULL, 20), EINVAL);
    MUST(close(file));
}

static void streams(int fd, int mode)
{
    char line[64];
    FILE *there;
    struct sockaddr_in peer;
    socklen_t len = sizeof peer;
    int pipes[2], number;
    convert(fd, mode);
    is_refused(fd);
    MUST(number = dup(fd));
    CHECK((there = fdopen(number, "r+")) != NULL);
    CHECK(fprintf(there, "seven across\n") == 13 && fflush(there) == 0);
    CHECK(fgets(line, sizeof line, there) != NULL && strcmp(line, "seven across\n") == 0);
    CHECK(fclose(there) == 0);
    is_refused(fd);
    MUST(pipe(pipes));
    CHECK(write(pipes[1], "x", 1) == 1);
    FAILS(splice(pipes[0], NULL, fd, NULL, 1, 0), EINVAL);
    CHECK(send(fd, "abc", 3, MSG_NOSIGNAL) == 3);
    CHECK(recv(fd, line, 3, MSG_WAITALL) == 3 && memcmp(line, "abc", 3) == 0);
    MUST(getpeername(fd, (struct sockaddr *)&peer, &len));
    FAILS(connect(fd, (struct sockaddr *)&peer, sizeof peer), EISCONN);
    MUST(shutdown(fd, SHUT_WR));
    CHECK(recv(fd, line, 1, 0) == 0);
    FAILS(shutdown(fd, SHUT_WR), ENOTCONN);
}

static void options(int mode)
{
    int value, file, local, tcp;
    MUST(file = open("/dev/null", O_RDWR));
    MUST(local = socket(AF_UNIX, SOCK_STREAM, 0));
    MUST(tcp = socket(AF_INET, SOCK_STREAM, 0));
    for (value = 0; value < 2; value++) {
        FAILS(setsockopt(-1, SOL_SOVIA, mode, &value, sizeof value), EBADF);
        FAILS(setsockopt(999, SOL_SOVIA, mode, &value, sizeof value), EBADF);
        FAILS(setsockopt(file, SOL_SOVIA, mode, &value, sizeof value), ENOTSOCK);
        FAILS(setsockopt(local, SOL_SOVIA, mode, &value, sizeof value), EOPNOTSUPP);
    }
    FAILS(setsockopt(tcp, SOL_SOVIA, mode, &value, sizeof value), EINVAL);
    value = 1;
    FAILS(setsockopt(tcp, SOL_SOVIA, mode, &value, sizeof value), ENOTCONN);
    value = 0;
    MUST(setsockopt(tcp, SOL_SOVIA, mode, &value, sizeof value));
    MUST(close(tcp) | close(local) | close(file));
}

struct asking {
    int fd, mode, result;
};

static void *ask(void *argument)
{
    struct asking *asking = argument;
    int on = 1;
    asking->result = setsockopt(asking->fd, SOL_SOVIA, asking->mode, &on, sizeof on) == 0 ? 0 : errno;
    return NULL;
}

/* A number that comes to be a file's while the socket that had it is converted stays the file's. */
static void closed_meanwhile(int mode)
{
    struct asking here, there;
    struct timeval limit = { 2, 0 };
    pthread_t threads[2];
    unsigned short port;
    char name[] = "/tmp/ext_beside_XXXXXX";
    struct stat stat;
    int file, listener = listening(&port);
    here.fd = calling(port);
    MUST(there.fd = accept(listener, NULL, NULL));
    MUST(close(listener));
    /* One that nobody has any more is not waited for longer. */
    MUST(setsockopt(here.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    MUST(setsockopt(there.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    here.mode = there.mode = mode;
    MUST(file = mkstemp(name));
    MUST(unlink(name));
    CHECK(pthread_create(&threads[0], NULL, ask, &here) == 0);
    /* Until it has a duplicate of its own nothing is said of the call; with one it goes on whatever becomes of the number. */
    while (fcntl(here.fd, F_GETFD) >= 0) {
        int fd, more = 0;
        struct stat own, other;
        MUST(fstat(here.fd, &own));
        for (fd = 3; fd < 1 << 17 && !more; fd++)
            more = fd != here.fd && fstat(fd, &other) == 0 && other.st_ino == own.st_ino;
        if (more) break;
    }
    CHECK(dup2(file, here.fd) == here.fd);
    CHECK(pthread_create(&threads[1], NULL, ask, &there) == 0);
    CHECK(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[1], NULL) == 0);
    CHECK(here.result == EBADF);
    CHECK(write(here.fd, "mine", 4) == 4);
    CHECK(fstat(file, &stat) == 0 && stat.st_size == 4);
    MUST(close(here.fd) | close(there.fd) | close(file));
}

int main(int count, char **arguments)
{
    int mode = mode_of(count > 1 ? arguments[1] : "vi");
    options(mode);
    both(mode, streams, echo);
    closed_meanwhile(mode);
    return 0;
}
