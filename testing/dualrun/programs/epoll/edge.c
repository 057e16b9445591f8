// Edge-triggered: once for what arrives, again for what arrives while some is unread, not for what merely remains.
#include "epoll.h"

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN | EPOLLET);
    say_set("idle", set, 0);
    tell();
    settle(fd, 5);
    say_set("first", set, -1);
    say_set("no edge", set, 0);
    TRY(recv(fd, buf, 2, 0));
    say_set("a part read", set, 0);
    tell();
    settle(fd, 8);
    say_set("more", set, -1);
    say_set("no edge", set, 0);
    OK(control(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLET));
    say_set("asked again", set, 0);
    TRY(recv(fd, buf, 100, 0));
    TRY(recv(fd, buf, 100, MSG_DONTWAIT));
    tell();
    settle(fd, 5);
    say_set("after it was empty", set, -1);
    TRY(recv(fd, buf, 100, 0));
    say_set("no edge", set, 0);
    tell();
    settle_end(fd);
    say_set("the end", set, -1);
    say_set("no edge", set, 0);
    TRY(recv(fd, buf, 100, 0));
}

static void partner(int fd) {
    for (int i = 0; i < 3; i++) {
        await();
        send_text(fd, "piece");
    }
    await();
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
