// A member is closed while another thread waits: the wait goes on, for the others.
#include "waiting.h"

static void subject(void) {
    int fds[2], set = new_set();
    connected_twice(fds);
    OK(control(set, EPOLL_CTL_ADD, fds[0], EPOLLIN));
    OK(control(set, EPOLL_CTL_ADD, fds[1], EPOLLIN));
    pthread_t thread = waiting_on(set, "the other");
    OK(close(fds[0]));
    tell();
    finish(thread);
    hear(fds[1], 4);
    TRY(control(set, EPOLL_CTL_MOD, fds[0], EPOLLIN));
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    await();
    recv_to_end(fds[0]);
    send_text(fds[1], "data");
    recv_to_end(fds[1]);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
