// A busy connection does not keep a pipe from being seen (Onload's bug 78734).
#include "epoll.h"

static void subject(int fd) {
    int ends[2], set = set_of(fd, EPOLLIN), seen_pipe = 0, seen_end = 0;
    OK(pipe(ends));
    OK(control(set, EPOLL_CTL_ADD, ends[0], EPOLLIN));
    uint64_t at = 0;
    tell();
    while (!seen_pipe) {
        struct epoll_event event;
        OK(epoll_wait(set, &event, 1, -1));
        if (event.data.fd == ends[0]) {
            seen_pipe = 1;
            tell();
            break;
        }
        ssize_t got = OK(recv(fd, buf, 2000, 0));
        if (!as_filled(buf, got, at)) die(__LINE__, "not as sent");
        if (at < 300000 && at + got >= 300000) OK(write(ends[1], "x", 1));
        at += got;
    }
    while (!seen_end) {
        ssize_t got = OK(recv(fd, buf, sizeof buf, 0));
        seen_end = got == 0;
    }
    say("pipe seen while the connection was busy");
}

static volatile int stop;

static void *listens(void *with) {
    await();
    stop = 1;
    return with;
}

static void partner(int fd) {
    await();
    pthread_t thread = start(listens, NULL);
    for (uint64_t at = 0; !stop; at += 4000) {
        fill(buf, 4000, at);
        send_all(fd, buf, 4000);
    }
    finish(thread);
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
