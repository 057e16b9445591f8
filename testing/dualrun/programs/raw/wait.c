// syscall() for poll, ppoll, epoll_pwait, epoll_pwait2, pselect6, as libuv once did.
#include "dual.h"
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>

static void subject(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    struct epoll_event event = {.events = EPOLLIN};
    TRY(syscall(SYS_poll, &one, 1L, 0L));
    int set = OK(syscall(SYS_epoll_create1, 0L));
    TRY(syscall(SYS_epoll_ctl, set, (long)EPOLL_CTL_ADD, fd, &event));
    meet();
    TRY(syscall(SYS_poll, &one, 1L, -1L));
    say("%s", events(one.revents));
    TRY(syscall(SYS_ppoll, &one, 1L, NULL, NULL, 8L));
    TRY(syscall(SYS_epoll_wait, set, &event, 1L, -1L));
    TRY(syscall(SYS_epoll_pwait, set, &event, 1L, -1L, NULL, 8L));
    TRY(syscall(SYS_epoll_pwait2, set, &event, 1L, NULL, NULL, 8L));
    say("%s", events(event.events));
    fd_set in;
    FD_ZERO(&in);
    FD_SET(fd, &in);
    TRY(syscall(SYS_select, (long)fd + 1, &in, NULL, NULL, NULL));
    TRY(syscall(SYS_pselect6, (long)fd + 1, &in, NULL, NULL, NULL, NULL));
    hear(fd, 4);
    meet();
    TRY(syscall(SYS_epoll_pwait, set, &event, 1L, -1L, NULL, 8L)); // waits
    hear(fd, 4);
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    meet();
    send_text(fd, "more");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
