// More sets than anybody has; a connection in the last of them.
#include "epoll.h"
#include <sys/resource.h>

enum { SETS = 4200, TURNS = 100 };

static void subject(int fd) {
    struct rlimit limit;
    OK(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max;
    OK(setrlimit(RLIMIT_NOFILE, &limit));
    int last = -1;
    for (int n = 0; n < SETS; n++) last = OK(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 7};
    OK(epoll_ctl(last, EPOLL_CTL_ADD, fd, &event));
    int wrong = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        send_text(fd, "q");
        event.data.u32 = 0;
        wrong += epoll_wait(last, &event, 1, -1) != 1 || event.data.u32 != 7;
        wrong += recv_all(fd, buf, 1) != 1;
    }
    say("wrong: %d", wrong);
}

static void partner(int fd) {
    while (recv_all(fd, buf, 1) == 1) send_text(fd, "a");
}

SUBJECT_AND_PARTNER(subject, partner)
