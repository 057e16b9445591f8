/* Plain calls on a converted socket mean what they mean on a socket. */
#define _GNU_SOURCE
#include <signal.h>
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/time.h>
#include <sys/uio.h>

static void all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        CHECK(n > 0);
        bytes += n;
        length -= (size_t)n;
    }
}

static void answer(int fd, int mode)
{
    char bytes[4096];
    ssize_t n;
    convert(fd, mode);
    while ((n = read(fd, bytes, sizeof bytes)) > 0) all(fd, bytes, (size_t)n);
    CHECK(n == 0);
    /* The asker may have said all: what is said now still arrives. */
    all(fd, "bye", 3);
}

static void ask(int fd, int mode)
{
    static char sent[300000], got[300000];
    struct epoll_event event, events[4];
    struct pollfd entry;
    struct timeval brief = {0, 50000};
    struct iovec pieces[2];
    struct msghdr message;
    fd_set set;
    int epoll, copy, bytes, other;
    size_t at = 0, index;
    convert(fd, mode);
    for (index = 0; index < sizeof sent; index++) sent[index] = (char)(index * 7 + index / 255);

    /* Nothing is there. */
    FAILS(recv(fd, got, 1, MSG_DONTWAIT), EAGAIN);
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof brief));
    FAILS(read(fd, got, 1), EAGAIN);
    brief.tv_sec = 20;
    MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof brief));
    FAILS(recv(fd, got, 1, MSG_OOB), EOPNOTSUPP);

    /* poll, epoll, level and edge, select. */
    MUST(epoll = epoll_create1(0));
    event.events = EPOLLIN | EPOLLET;
    event.data.u64 = 5;
    MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    CHECK(epoll_wait(epoll, events, 4, 0) == 0);
    for (index = 0; index < 20; index++) {
        all(fd, "ping", 4);
        CHECK(epoll_wait(epoll, events, 4, 20000) == 1 && events[0].data.u64 == 5 && events[0].events == EPOLLIN);
        entry.fd = fd;
        entry.events = POLLIN | POLLOUT;
        CHECK(poll(&entry, 1, 20000) == 1 && entry.revents == (POLLIN | POLLOUT));
        FD_ZERO(&set);
        FD_SET(fd, &set);
        CHECK(select(fd + 1, &set, NULL, NULL, NULL) == 1 && FD_ISSET(fd, &set));
        CHECK(recv(fd, got, 2, MSG_PEEK) == 2);
        CHECK(recv(fd, got, 4, MSG_WAITALL) == 4 && memcmp(got, "ping", 4) == 0);
        entry.events = POLLIN;
        CHECK(poll(&entry, 1, 0) == 0);
    }
    /* FIONREAD. */
    all(fd, "12345", 5);
    for (bytes = 0; bytes < 5;) {
        MUST(poll(&entry, 1, 20000));
        MUST(ioctl(fd, FIONREAD, &bytes));
    }
    CHECK(bytes == 5 && recv(fd, got, 5, MSG_WAITALL) == 5);

    /* Vectors, messages, a duplicate. */
    pieces[0].iov_base = sent;
    pieces[0].iov_len = 3;
    pieces[1].iov_base = sent + 3;
    pieces[1].iov_len = 9;
    CHECK(writev(fd, pieces, 2) == 12);
    CHECK(recv(fd, got, 12, MSG_WAITALL) == 12 && memcmp(got, sent, 12) == 0);
    memset(&message, 0, sizeof message);
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    CHECK(sendmsg(fd, &message, 0) == 12);
    pieces[0].iov_base = got;
    pieces[1].iov_base = got + 3;
    memset(got, 0, 12);
    CHECK(recvmsg(fd, &message, MSG_WAITALL) == 12 && memcmp(got, sent, 12) == 0);
    MUST(copy = dup(fd));
    CHECK(write(copy, "dup", 3) == 3 && recv(copy, got, 3, MSG_WAITALL) == 3);
    MUST(close(copy));
    MUST(other = open("/proc/self/exe", O_RDONLY));
    FAILS(sendfile(fd, other, NULL, 10), EINVAL);
    CHECK(dprintf(fd, "%d", 42) == 2 && recv(fd, got, 2, MSG_WAITALL) == 2 && memcmp(got, "42", 2) == 0);

    /* O_NONBLOCK: full one way, and then the other. */
    MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
    for (index = 0; index < sizeof sent || at < sizeof sent;) {
        ssize_t n;
        entry.events = POLLIN;
        if (index < sizeof sent) entry.events |= POLLOUT;
        CHECK(poll(&entry, 1, 20000) == 1);
        if (index < sizeof sent && (n = write(fd, sent + index, sizeof sent - index)) > 0) index += (size_t)n;
        if ((n = read(fd, got + at, sizeof got - at)) > 0) at += (size_t)n;
    }
    CHECK(memcmp(sent, got, sizeof sent) == 0);
    MUST(shutdown(fd, SHUT_WR));
    signal(SIGPIPE, SIG_IGN);
    FAILS(write(fd, "x", 1), EPIPE);
    MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK));
    CHECK(recv(fd, got, 4, MSG_WAITALL) == 3 && memcmp(got, "bye", 3) == 0);
    CHECK(read(fd, got, 1) == 0);
    entry.events = POLLIN | POLLRDHUP;
    CHECK(poll(&entry, 1, 20000) == 1 && entry.revents & POLLIN && entry.revents & POLLRDHUP);
}

int main(int count, char **arguments)
{
    both(mode_of(count > 1 ? arguments[1] : "vi"), ask, answer);
    return 0;
}
