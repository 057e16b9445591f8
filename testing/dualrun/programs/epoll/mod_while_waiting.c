// CTL_MOD while another thread waits: it wakes for what is asked for now.
#include "waiting.h"

static void subject(int fd) {
    int set = set_of(fd, 0);
    pthread_t thread = waiting_on(set, "asked for output meanwhile");
    OK(control(set, EPOLL_CTL_MOD, fd, EPOLLOUT));
    finish(thread);
    OK(control(set, EPOLL_CTL_MOD, fd, 0));
    tell();
    settle(fd, 4);
    thread = waiting_on(set, "asked for input meanwhile");
    OK(control(set, EPOLL_CTL_MOD, fd, EPOLLIN));
    finish(thread);
    hear(fd, 4);
    thread = waiting_on(set, "asked before it came");
    OK(control(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLET));
    tell();
    finish(thread);
    hear(fd, 4);
}

static void partner(int fd) {
    for (int i = 0; i < 2; i++) {
        await();
        send_text(fd, "data");
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
