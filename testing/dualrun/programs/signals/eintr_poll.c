// poll, select and their kin are ended by a signal even with SA_RESTART.
#include "alarms.h"
#include <sys/epoll.h>
#include <sys/select.h>

static void subject(int fd) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    struct epoll_event event = {.events = EPOLLIN};
    int set = OK(epoll_create1(0));
    OK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    fd_set in;
    for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
        alarms_begin(flags);
        TRY(poll(&one, 1, -1));
        TRY(poll(&one, 1, 100000));
        TRY(ppoll(&one, 1, NULL, NULL));
        FD_ZERO(&in);
        FD_SET(fd, &in);
        TRY(select(fd + 1, &in, NULL, NULL, NULL));
        TRY(pselect(fd + 1, &in, NULL, NULL, NULL, NULL));
        TRY(epoll_wait(set, &event, 1, -1));
        TRY(epoll_wait(set, &event, 1, 100000));
        TRY(epoll_pwait(set, &event, 1, -1, NULL));
        TRY(epoll_pwait2(set, &event, 1, NULL, NULL));
        alarms_end();
        say_alarms("each");
    }
    tell();
    TRY(epoll_wait(set, &event, 1, -1));
    hear(fd, 4);
}

static void partner(int fd) {
    await();
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
