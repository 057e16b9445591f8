/* What both samples need: a connection between two processes, converted. */
#ifndef COMMON_H
#define COMMON_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sovia.h>

#define MUST(call)                                                                        \
    do {                                                                                  \
        if ((call) < 0) {                                                                 \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, strerror(errno)); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

/* The level's option for "vi" or "iwarp". */
static inline int mode_of(const char *name)
{
    return strcmp(name, "iwarp") == 0 ? SOVIA_IWARP_MODE : SOVIA_VI_MODE;
}

static inline void convert(int fd, int mode)
{
    int on = 1;
    MUST(setsockopt(fd, SOL_SOVIA, mode, &on, sizeof on));
}

/* Listens on this host; the port goes to *port. */
static inline int listening(unsigned short *port)
{
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MUST(fd);
    MUST(bind(fd, (struct sockaddr *)&at, sizeof at));
    MUST(listen(fd, 8));
    MUST(getsockname(fd, (struct sockaddr *)&at, &len));
    *port = ntohs(at.sin_port);
    return fd;
}

static inline int calling(unsigned short port)
{
    struct sockaddr_in at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(port);
    MUST(fd);
    MUST(connect(fd, (struct sockaddr *)&at, sizeof at));
    return fd;
}

/* The next completion, which must have gone well. */
static inline struct sovia_completion done(int fd)
{
    struct sovia_completion completion;
    if (sovia_wait(fd, &completion, 1, 20000) != 1 || completion.error != 0) {
        fprintf(stderr, "operation failed\n");
        exit(1);
    }
    return completion;
}

#endif
