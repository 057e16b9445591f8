// Numbers above 1024, where select ends and poll, epoll and the rest do not.
#include "dual.h"
#include <sys/epoll.h>

static void subject(int fd) {
    TRY(dup2(fd, 1500));
    OK(close(fd));
    int high = 1500;
    send_text(high, "from 1500");
    say_poll("data", high, POLLIN, -1);
    int set = OK(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN, .data.fd = high};
    TRY(epoll_ctl(set, EPOLL_CTL_ADD, high, &event));
    TRY(epoll_wait(set, &event, 1, -1));
    say("%d %s", event.data.fd, events(event.events));
    hear(high, 4);
    TRY(fcntl(high, F_DUPFD, 3000));
    send_text(3000, "from 3000");
}

static void partner(int fd) {
    hear(fd, 9);
    send_text(fd, "data");
    hear(fd, 9);
}

SUBJECT_AND_PARTNER(subject, partner)
