// A duplicate is a member of its own; when the number that was added is closed the open file stays in the set.
#include "epoll.h"

static void subject(int fd) {
    int twin = OK(dup(fd)), set = set_of(fd, EPOLLIN);
    OK(control(set, EPOLL_CTL_ADD, twin, EPOLLIN));
    meet();
    settle(fd, 4);
    struct epoll_event both[4];
    TRY(epoll_wait(set, both, 4, -1));
    say("the two of them: %d", both[0].data.fd + both[1].data.fd == fd + twin);
    OK(close(twin));
    TRY(epoll_wait(set, both, 4, 0)); // both still: the open file lives
    TRY(control(set, EPOLL_CTL_DEL, twin, 0));
    OK(dup2(fd, twin));
    TRY(control(set, EPOLL_CTL_DEL, twin, 0));
    TRY(epoll_wait(set, both, 4, 0));
    say("the one that is left: %d", both[0].data.fd == fd);
    OK(close(fd));
    TRY(epoll_wait(set, both, 4, 0));
    hear(twin, 4);
    TRY(epoll_wait(set, both, 4, 0));
    OK(close(twin));
    TRY(epoll_wait(set, both, 4, 0));
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
