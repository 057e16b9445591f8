// The parent exits at once, while the peer sends more than there is room for; the child goes on, and the peer waits in a set that it made before.
#include "epoll.h"

enum { MUCH = 3000000 };

static void subject(int fd) {
    if (OK(fork()) > 0) exit(0);
    recv_filled(fd, MUCH);
    send_filled(fd, MUCH);
    hear(fd, 4);
    send_text(fd, "yes");
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

static void partner(int fd) {
    struct epoll_event event = {.events = EPOLLIN};
    int set = OK(epoll_create1(0)), same = 1;
    OK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    send_filled(fd, MUCH);
    for (int at = 0; at < MUCH;) {
        OK(epoll_wait(set, &event, 1, -1));
        int got = OK(recv(fd, buf, sizeof buf, MSG_DONTWAIT));
        same = same && got > 0 && as_filled(buf, got, at);
        at += got;
    }
    say("all as sent: %d", same);
    send_text(fd, "last");
    hear(fd, 3);
    recv_to_end(fd);
    OK(epoll_wait(set, &event, 1, -1));
    say("the set: %s", events(event.events & EPOLLIN));
    OK(close(fd));
}

SUBJECT_AND_PARTNER(subject, partner)
