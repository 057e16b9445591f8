// EPOLLRDHUP, with and without data before the end, and not unless asked for.
#include "epoll.h"

static void subject(int fd) {
    int asked = set_of(fd, EPOLLRDHUP), not_asked = set_of(fd, EPOLLIN);
    say_set("idle", asked, 0);
    tell();
    settle(fd, 4);
    say_set("data, asked for hang-up only", asked, 0);
    tell();
    say_set("the peer has shut", asked, -1);
    say_set("asked for input", not_asked, -1);
    OK(control(asked, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLRDHUP));
    say_set("both", asked, 0);
    hear(fd, 5);
    say_set("both, at the end", asked, 0);
}

static void partner(int fd) {
    await();
    send_text(fd, "data");
    await();
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
