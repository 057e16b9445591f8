// A thread sleeps on a set in which nothing is, or nothing with rings: in `poll`, or in a set that it is in. What comes into it meanwhile wakes it.
#include "waiting.h"

static int polled;

static void *polls(void *when) {
    int ends[2];
    OK(pipe(ends));
    waiting_tid = gettid();
    struct pollfd two[] = {{.fd = polled, .events = POLLIN}, {.fd = ends[0], .events = POLLIN}};
    int count = poll(two, 2, -1);
    say("%s: poll %d %s %s", (char *)when, count, events((unsigned short)two[0].revents),
        events((unsigned short)two[1].revents));
    OK(close(ends[0]));
    OK(close(ends[1]));
    return NULL;
}

static pthread_t polling(int set, const char *when) {
    polled = set;
    waiting_tid = 0;
    pthread_t thread = start(polls, (void *)when);
    while (waiting_tid == 0) sched_yield();
    wait_asleep(waiting_tid);
    return thread;
}

static void subject(int fd) {
    int set = new_set(), outer = set_of(set, EPOLLIN), other = new_set();

    pthread_t thread = polling(set, "added while somebody polls the set");
    OK(control(set, EPOLL_CTL_ADD, fd, EPOLLIN));
    tell();
    finish(thread);
    hear(fd, 4);
    OK(control(set, EPOLL_CTL_DEL, fd, 0));

    tell();
    settle(fd, 4);
    thread = polling(set, "added when there was something");
    OK(control(set, EPOLL_CTL_ADD, fd, EPOLLIN));
    finish(thread);
    hear(fd, 4);
    OK(control(set, EPOLL_CTL_DEL, fd, 0));

    thread = waiting_on(outer, "added to the inner set");
    OK(control(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET));
    tell();
    finish(thread);
    hear(fd, 4);
    OK(control(set, EPOLL_CTL_DEL, fd, 0));

    tell();
    settle(fd, 4);
    thread = waiting_on(outer, "added to the inner set when there was something");
    OK(control(set, EPOLL_CTL_ADD, fd, EPOLLIN));
    finish(thread);
    hear(fd, 4);

    thread = polling(outer, "polls the outer set");
    tell();
    finish(thread);
    hear(fd, 4);

    thread = waiting_on(other, "a set with a member comes into the set");
    OK(control(other, EPOLL_CTL_ADD, set, EPOLLIN));
    tell();
    finish(thread);
    hear(fd, 4);
    OK(control(other, EPOLL_CTL_DEL, set, 0));

    tell();
    settle(fd, 4);
    thread = waiting_on(other, "a set with news comes into the set");
    OK(control(other, EPOLL_CTL_ADD, set, EPOLLIN));
    finish(thread);
    hear(fd, 4);

    thread = polling(other, "polls that set, where the inner one loses its member and has it again");
    OK(control(set, EPOLL_CTL_DEL, fd, 0));
    OK(control(set, EPOLL_CTL_ADD, fd, EPOLLIN));
    tell();
    finish(thread);
    hear(fd, 4);
}

static void partner(int fd) {
    for (int i = 0; i < 8; i++) {
        await();
        send_text(fd, "data");
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
