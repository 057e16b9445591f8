// An edge-triggered writer that was idle in its set until its bytes went another way than before: that there is room again is told. The set is busy
// with something else meanwhile.
#include "epoll.h"
#include <sys/eventfd.h>

enum { BEFORE = 1 << 20, BYTES = 8 << 20 };

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET), other = OK(eventfd(1, EFD_NONBLOCK));
    OK(control(set, EPOLL_CTL_ADD, other, EPOLLIN));
    struct epoll_event reported[2];
    // Much comes, and nothing goes.
    recv_filled(fd, BEFORE);
    for (int i = 0; i < 600; i++) OK(epoll_wait(set, reported, 2, -1));
    OK(control(set, EPOLL_CTL_DEL, other, 0));
    OK(fcntl(fd, F_SETFL, O_NONBLOCK));
    tell();
    for (size_t at = 0; at < BYTES;) {
        char chunk[16384];
        fill(chunk, sizeof chunk, at);
        ssize_t sent = send(fd, chunk, BYTES - at < sizeof chunk ? BYTES - at : sizeof chunk, 0);
        if (sent > 0) at += sent;
        else if (errno == EAGAIN) OK(epoll_wait(set, reported, 2, -1));
        else die(__LINE__, "send");
    }
    OK(shutdown(fd, SHUT_WR));
}

static void partner(int fd) {
    send_filled(fd, BEFORE);
    await();
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
