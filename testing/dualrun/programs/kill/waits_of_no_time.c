// A peer is killed while a program asks its set now and then, and never sleeps there: it is told soon.
#include "epoll.h"

enum { TURNS = 200, WAITS = 500 };

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN), told = 0;
    struct epoll_event event;
    for (int i = 0; i < TURNS; i++) {
        OK(epoll_wait(set, &event, 1, -1));
        if (recv_all(fd, buf, 4) != 4) die(__LINE__, "recv");
        send_text(fd, "back");
    }
    tell();
    for (int i = 0; i < WAITS && !told; i++) {
        told = OK(epoll_wait(set, &event, 1, 0));
        // Longer than the kernel takes to tell, and not all that there is to do.
        if (!told) OK(usleep(2000));
    }
    say("told: %d", told);
}

static void partner(int fd) {
    for (int i = 0; i < TURNS; i++) {
        send_text(fd, "turn");
        if (recv_all(fd, buf, 4) != 4) die(__LINE__, "recv");
    }
    await();
    OK(kill(getpid(), SIGKILL));
}

SUBJECT_AND_PARTNER(subject, partner)
