// What epoll_ctl and epoll_wait refuse.
#include "epoll.h"

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN), other = new_set(), file = OK(open("/proc/self/exe", O_RDONLY));
    struct epoll_event event = {.events = EPOLLIN};
    TRY(control(set, EPOLL_CTL_ADD, fd, EPOLLOUT)); // EEXIST
    TRY(control(other, EPOLL_CTL_MOD, fd, EPOLLIN)); // ENOENT
    TRY(control(other, EPOLL_CTL_DEL, fd, EPOLLIN));
    TRY(control(set, EPOLL_CTL_ADD, set, EPOLLIN)); // EINVAL
    TRY(control(set, 77, fd, EPOLLIN));
    TRY(control(fd, EPOLL_CTL_ADD, set, EPOLLIN));
    TRY(control(set, EPOLL_CTL_ADD, file, EPOLLIN)); // EPERM
    TRY(control(set, EPOLL_CTL_ADD, 800, EPOLLIN)); // EBADF
    TRY(control(800, EPOLL_CTL_ADD, fd, EPOLLIN));
    TRY(epoll_ctl(set, EPOLL_CTL_MOD, fd, (void *)(opaque(0) + 16))); // EFAULT
    TRY(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    TRY(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
    TRY(epoll_wait(set, &event, opaque(0), 0));
    TRY(epoll_wait(set, &event, opaque(-1), 0));
    TRY(epoll_wait(fd, &event, 1, 0));
    TRY(epoll_wait(800, &event, 1, 0));
    TRY(epoll_create1(77));
    TRY(epoll_create(0));
    TRY(epoll_create(1) >= 0);
    OK(control(set, EPOLL_CTL_ADD, other, EPOLLIN));
    TRY(control(other, EPOLL_CTL_ADD, set, EPOLLIN)); // ELOOP
    // A chain of sets may have five links.
    int chain = set_of(set, EPOLLIN);
    for (int i = 0; i < 8; i++) {
        int next = new_set();
        TRY(control(next, EPOLL_CTL_ADD, chain, EPOLLIN));
        chain = next;
    }
    TRY(close(set));
    TRY(epoll_wait(set, &event, 1, 0));
    TRY(read(other, buf, 1));
    TRY(write(other, buf, 1));
}

static void partner(int fd) { recv_to_end(fd); }

SUBJECT_AND_PARTNER(subject, partner)
