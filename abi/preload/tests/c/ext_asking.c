/* Who may ask, and what the answers are. */
#define _DEFAULT_SOURCE
#include <signal.h>
#include "test.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/time.h>

static int set(int fd, int mode, int value)
{
    return setsockopt(fd, SOL_SOVIA, mode, &value, sizeof value);
}

static int get(int fd, int mode)
{
    int value = -1;
    socklen_t len = sizeof value;
    MUST(getsockopt(fd, SOL_SOVIA, mode, &value, &len));
    CHECK(len == sizeof value);
    return value;
}

static void wrong(void)
{
    int pipes[2], fd, other, one = 1;
    unsigned short port;
    MUST(pipe(pipes));
    FAILS(set(pipes[0], SOVIA_VI_MODE, 1), ENOTSOCK);
    FAILS(set(9999, SOVIA_VI_MODE, 1), EBADF);
    FAILS(set(-1, SOVIA_VI_MODE, 1), EBADF);
    MUST(fd = socket(AF_INET, SOCK_DGRAM, 0));
    FAILS(set(fd, SOVIA_IWARP_MODE, 1), EOPNOTSUPP);
    MUST(close(fd));
    MUST(fd = socket(AF_INET, SOCK_STREAM, 0));
    FAILS(set(fd, SOVIA_VI_MODE, 1), ENOTCONN);
    FAILS(set(fd, 77, 1), ENOPROTOOPT);
    FAILS(set(fd, SOVIA_VI_MODE, 2), EINVAL);
    FAILS(setsockopt(fd, SOL_SOVIA, SOVIA_VI_MODE, &one, 3), EINVAL);
    FAILS(setsockopt(fd, SOL_SOVIA, SOVIA_VI_MODE, NULL, sizeof one), EFAULT);
    CHECK(set(fd, SOVIA_VI_MODE, 0) == 0 && get(fd, SOVIA_VI_MODE) == 0);
    MUST(close(fd));
    other = listening(&port);
    FAILS(set(other, SOVIA_VI_MODE, 1), ENOTCONN);
    MUST(fd = calling(port));
    FAILS(sovia_poll(fd, NULL, 1), EOPNOTSUPP);
    FAILS(sovia_completion_fd(9999), EBADF);
    MUST(one = dup(fd));
    FAILS(set(fd, SOVIA_VI_MODE, 1), EBUSY);
    MUST(close(one));
    MUST(close(fd));
    MUST(close(other));
}

static void ask_alone(int fd, int mode)
{
    struct timeval brief = {0, 100000};
    char byte;
    (void)mode;
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof brief));
    FAILS(set(fd, SOVIA_VI_MODE, 1), ETIMEDOUT);
    /* The end that accepted asks alone over iWARP, too: nothing has happened. */
    FAILS(set(fd, SOVIA_IWARP_MODE, 1), ETIMEDOUT);
    CHECK(get(fd, SOVIA_VI_MODE) == 0);
    CHECK(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
    CHECK(write(fd, "p", 1) == 1);
    brief.tv_sec = 20;
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof brief));
    CHECK(recv(fd, &byte, 1, MSG_PEEK) == 1 && byte == 'q');
    FAILS(set(fd, SOVIA_IWARP_MODE, 1), EBUSY);
    FAILS(set(fd, SOVIA_VI_MODE, 1), EBUSY);
    CHECK(read(fd, &byte, 1) == 1 && byte == 'q');
    CHECK(write(fd, "e", 1) == 1);
}

static void stay_plain(int fd, int mode)
{
    char byte;
    (void)mode;
    CHECK(read(fd, &byte, 1) == 1 && byte == 'p');
    CHECK(write(fd, "q", 1) == 1);
    CHECK(read(fd, &byte, 1) == 1 && byte == 'e');
}

static void ask(int fd, int mode)
{
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    int flags = fcntl(fd, F_GETFL), nodelay = 0;
    char byte;
    convert(fd, mode);
    CHECK(get(fd, mode) == 1 && get(fd, mode == SOVIA_VI_MODE ? SOVIA_IWARP_MODE : SOVIA_VI_MODE) == 0);
    FAILS(set(fd, SOVIA_VI_MODE, 1), EALREADY);
    FAILS(set(fd, SOVIA_IWARP_MODE, 1), EALREADY);
    FAILS(set(fd, mode, 0), EINVAL);
    MUST(getpeername(fd, (struct sockaddr *)&name, &len));
    CHECK(name.sin_family == AF_INET && name.sin_port != 0);
    MUST(getsockname(fd, (struct sockaddr *)&name, &len));
    CHECK(name.sin_family == AF_INET);
    len = sizeof nodelay;
    MUST(getsockopt(fd, 6, 1, &nodelay, &len));
    CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) == (flags & O_NONBLOCK));
    CHECK(write(fd, "x", 1) == 1);
    CHECK(recv(fd, &byte, 1, MSG_WAITALL) == 1 && byte == 'x');
}

static void forget(int fd, int mode)
{
    char byte;
    convert(fd, mode);
    CHECK(read(fd, &byte, 1) == 1 && byte == 'x');
    CHECK(write(fd, "y", 1) == 1);
    CHECK(read(fd, &byte, 1) == 0);
}

/* What was set before stays, and what the socket was a member of is left. */
static void ask_late(int fd, int mode)
{
    struct epoll_event event, events[4];
    struct timeval waits = {7, 250000}, kept;
    socklen_t len = sizeof kept;
    struct timeval soon = {0, 50000};
    int epoll;
    char byte;
    MUST(epoll = epoll_create1(0));
    event.events = EPOLLIN | EPOLLOUT;
    event.data.u64 = 1;
    MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &waits, sizeof waits));
    waits.tv_sec = 8;
    MUST(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &waits, sizeof waits));
    convert(fd, mode);
    MUST(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kept, &len));
    CHECK(kept.tv_sec == 7 && kept.tv_usec >= 250000);
    MUST(getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kept, &len));
    CHECK(kept.tv_sec == 8 && kept.tv_usec >= 250000);
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon));
    FAILS(read(fd, &byte, 1), EAGAIN);
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &waits, sizeof waits));
    CHECK(epoll_wait(epoll, events, 4, 0) == 0);
    FAILS(epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL), ENOENT);
    CHECK(write(fd, "x", 1) == 1);
    CHECK(read(fd, &byte, 1) == 1 && byte == 'y');
    CHECK(epoll_wait(epoll, events, 4, 0) == 0);
    event.data.u64 = 2;
    MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    CHECK(epoll_wait(epoll, events, 4, 1000) == 1 && events[0].data.u64 == 2 && events[0].events == EPOLLOUT);
    MUST(close(epoll));
}

int main(int count, char **arguments)
{
    int mode = mode_of(count > 1 ? arguments[1] : "vi");
    wrong();
    both(mode, ask_alone, stay_plain);
    both(mode, ask, ask);
    both(mode, ask_late, forget);
    return 0;
}
