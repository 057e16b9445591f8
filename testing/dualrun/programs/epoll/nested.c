// A set in a set in a set; the outer one waits for what the inner one has (libvma never fires).
#include "epoll.h"

static void subject(int fd) {
    int inner = set_of(fd, EPOLLIN), middle = set_of(inner, EPOLLIN), outer = set_of(middle, EPOLLIN | EPOLLET);
    say_set("outer", outer, 0);
    meet();
    say_set("outer", outer, -1);
    say_set("middle", middle, 0);
    say_set("inner", inner, 0);
    settle(fd, 4);
    hear(fd, 4);
    say_set("middle", middle, 0);
    say_set("inner", inner, 0);
    meet();
    say_set("middle, first", middle, -1);
    say_set("outer", outer, -1);
    hear(fd, 4);
    meet();
    say_set("outer at the end", outer, -1);
    say_set("inner", inner, 0);
}

static void partner(int fd) {
    for (int i = 0; i < 2; i++) {
        meet();
        send_text(fd, "data");
    }
    meet();
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
