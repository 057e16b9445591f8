// A connection and its duplicate in one set, edge-triggered, from before the connection is upgraded: each is told of all that comes.
#include "epoll.h"

enum { ROUNDS = 24 };

static void subject(int fd) {
    int twin = OK(dup(fd)), set = set_of(fd, EPOLLIN | EPOLLOUT | EPOLLET), told[2] = {0};
    OK(control(set, EPOLL_CTL_ADD, twin, EPOLLIN | EPOLLOUT | EPOLLET));
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        settle(fd, 4);
        for (int mine = 0, its = 0; !mine || !its;) {
            struct epoll_event one[4];
            int count = OK(epoll_wait(set, one, 4, -1));
            for (int j = 0; j < count; j++) {
                int in = (one[j].events & EPOLLIN) != 0;
                if (one[j].data.fd == fd) mine |= in;
                else its |= in;
            }
        }
        told[0]++;
        told[1]++;
        char text[4];
        // By one of them, and answered by the other.
        int here = i % 2 ? fd : twin;
        if (recv_all(here, text, 4) != 4) die(__LINE__, "recv");
        send_text(here == fd ? twin : fd, "back");
    }
    say("told: %d, %d", told[0], told[1]);
    recv_to_end(fd);
}

static void partner(int fd) {
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        send_text(fd, "data");
        char text[4];
        if (recv_all(fd, text, 4) != 4) die(__LINE__, "recv");
    }
    OK(shutdown(fd, SHUT_WR));
}

SUBJECT_AND_PARTNER(subject, partner)
