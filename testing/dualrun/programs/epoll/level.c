// Level-triggered: reported as long as it is so.
#include "epoll.h"

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN);
    say_set("idle", set, 0);
    meet();
    say_set("data", set, -1);
    say_set("data", set, -1);
    settle(fd, 10);
    TRY(recv(fd, buf, 4, 0));
    say_set("some left", set, 0);
    TRY(recv(fd, buf, 6, 0));
    say_set("taken", set, 0);
    say_set("taken", set, 10);
    meet();
    say_set("the end", set, -1);
    TRY(recv(fd, buf, 1, 0));
    say_set("still the end", set, -1);
    OK(control(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP));
    say_set("all", set, -1);
    OK(control(set, EPOLL_CTL_MOD, fd, 0));
    say_set("nothing asked", set, 0);
    OK(shutdown(fd, SHUT_WR));
    say_set("both shut", set, 0);
    OK(control(set, EPOLL_CTL_DEL, fd, 0));
    say_set("removed", set, 0);
}

static void partner(int fd) {
    meet();
    send_text(fd, "0123456789");
    meet();
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
