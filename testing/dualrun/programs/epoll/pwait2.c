// epoll_pwait2: time in nanoseconds (Onload's 174).
#include "epoll.h"

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN);
    struct epoll_event event = {0};
    struct timespec zero = {0, 0}, little = {0, 3000000}, bad = {0, 1000000000}, past = {-1, 0};
    TRY(epoll_pwait2(set, &event, 1, &zero, NULL));
    TRY(epoll_pwait2(set, &event, 1, &little, NULL));
    TRY(epoll_pwait2(set, &event, 1, &bad, NULL));
    TRY(epoll_pwait2(set, &event, 1, &past, NULL));
    TRY(epoll_pwait2(set, &event, 0, &zero, NULL));
    meet();
    TRY(epoll_pwait2(set, &event, 1, NULL, NULL));
    say("%s", events(event.events));
    hear(fd, 4);
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
