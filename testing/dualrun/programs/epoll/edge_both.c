// Edge-triggered for input and output at once, as nginx and libuv do: each report tells all that is so.
#include "epoll.h"

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    say_set("at first", set, -1);
    say_set("no edge", set, 0);
    tell();
    settle(fd, 4);
    say_set("data", set, -1);
    hear(fd, 4);
    say_set("no edge", set, 0);
    send_text(fd, "answer");
    await();
    say_set("sent", set, 0); // an acknowledgement may have made room: not an edge unless it was full
    tell();
    settle(fd, 4);
    settle_end(fd);
    say_set("the end", set, -1);
    hear(fd, 5);
}

static void partner(int fd) {
    await();
    send_text(fd, "data");
    hear(fd, 6);
    tell();
    await();
    send_text(fd, "last");
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
