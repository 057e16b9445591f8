/* Pairs of converted sockets, and checks. */
#ifndef TEST_H
#define TEST_H

#include "../../samples/common.h"

#include <sys/wait.h>

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "%s:%d: not so: %s (errno %d: %s)\n", __FILE__, __LINE__, #condition, errno, strerror(errno)); \
            _exit(1);                                                             \
        }                                                                         \
    } while (0)

#define FAILS(call, number) CHECK((errno = 0, (call) == -1 && errno == (number)))

/* Runs child in another process with its end of a connection, and parent with the other; neither is converted. */
static inline void both(int mode, void (*parent)(int fd, int mode), void (*child)(int fd, int mode))
{
    unsigned short port;
    int status, fd, listener = listening(&port);
    pid_t pid = fork();
    MUST(pid);
    if (pid == 0) {
        MUST(close(listener));
        fd = calling(port);
        child(fd, mode);
        exit(0);
    }
    MUST(fd = accept(listener, NULL, NULL));
    MUST(close(listener));
    parent(fd, mode);
    close(fd);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0) || WIFSIGNALED(status));
    CHECK(!WIFSIGNALED(status) || WTERMSIG(status) == SIGKILL);
}

#endif
