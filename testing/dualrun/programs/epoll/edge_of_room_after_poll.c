// A set that has told of all the room there was hears of more by an edge, which poll has found: the other end has written what a ring holds, and reads no more.
#include "epoll.h"
#include "much.h"

enum { LESS = 1900000 };

static int set;

static void in_poll_then_set(int fd) {
    struct epoll_event event;
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    OK(poll(&one, 1, -1));
    OK(epoll_wait(set, &event, 1, -1));
}

static void subject(int fd) {
    await();
    set = set_of(fd, EPOLLOUT | EPOLLET);
    struct epoll_event event;
    while (OK(epoll_wait(set, &event, 1, 0)) > 0) {
    }
    write_much(fd, in_poll_then_set);
    tell();
    recv_filled(fd, LESS);
    TRY(recv(fd, buf, 1, 0));
}

static void partner(int fd) {
    send_filled(fd, LESS);
    tell();
    await();
    recv_filled(fd, MUCH);
}

SUBJECT_AND_PARTNER(subject, partner)
