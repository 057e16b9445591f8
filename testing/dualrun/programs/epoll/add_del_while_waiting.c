// CTL_ADD and CTL_DEL while another thread waits.
#include "waiting.h"

static void subject(void) {
    int fds[2], set = new_set();
    connected_twice(fds);
    tell();
    settle(fds[0], 4);
    pthread_t thread = waiting_on(set, "added meanwhile");
    OK(control(set, EPOLL_CTL_ADD, fds[0], EPOLLIN));
    finish(thread);
    hear(fds[0], 4);
    thread = waiting_on(set, "the other, after the first was removed");
    OK(control(set, EPOLL_CTL_DEL, fds[0], 0));
    tell();
    settle(fds[0], 4);
    OK(control(set, EPOLL_CTL_ADD, fds[1], EPOLLIN | EPOLLRDHUP));
    tell();
    finish(thread);
    hear(fds[0], 4);
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    for (int i = 0; i < 2; i++) {
        await();
        send_text(fds[0], "data");
    }
    await();
    OK(shutdown(fds[1], SHUT_WR));
    recv_to_end(fds[0]);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
