// This end sends no more, and the other one neither, behind a byte that is unread and an urgent one: poll and epoll tell that both have ended.
#include "dual.h"
#include <sys/epoll.h>

static void subject(int fd) {
    int set = OK(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN | EPOLLPRI | EPOLLRDHUP};
    OK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    settle(fd, 7);
    recv_filled(fd, 7);
    OK(shutdown(fd, SHUT_WR));
    tell();
    await();
    settle_end(fd);
    say_poll("the end", fd, POLLIN | POLLPRI | POLLRDHUP, 0);
    OK(epoll_wait(set, &event, 1, 0));
    say("a set: %s", events(event.events));
    TRY(recv(fd, buf, 100, 0));
    say_poll("at the mark", fd, POLLIN | POLLPRI | POLLRDHUP, 0);
    TRY(recv(fd, buf, 1, MSG_OOB));
    recv_to_end(fd);
    say_poll("behind it", fd, POLLIN | POLLPRI | POLLRDHUP, 0);
}

static void partner(int fd) {
    send_filled(fd, 7);
    await();
    send_text(fd, "x");
    OK(send(fd, "!", 1, MSG_OOB));
    OK(shutdown(fd, SHUT_WR));
    tell();
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
