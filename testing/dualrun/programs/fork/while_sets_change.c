// One thread makes and closes epoll instances, and another waits on one that is a member of one, while a third forks.
#include "epoll.h"
#include <stdatomic.h>

static atomic_int over;
static int inner, outer;

static void *makes(void *with) {
    while (!over) {
        int set = new_set();
        OK(control(set, EPOLL_CTL_ADD, outer, EPOLLIN));
        OK(close(set));
    }
    return with;
}

static void *waits(void *with) {
    struct epoll_event event;
    while (!over) OK(epoll_wait(outer, &event, 1, 0));
    return with;
}

static void subject(int fd) {
    inner = set_of(fd, EPOLLIN);
    outer = set_of(inner, EPOLLIN);
    pthread_t threads[] = {start(makes, NULL), start(waits, NULL)};
    for (int i = 0; i < 200; i++) {
        pid_t child = OK(fork());
        if (child == 0) {
            // What the sets are the child knows, too.
            struct epoll_event event;
            _exit(epoll_wait(outer, &event, 1, 0) < 0);
        }
        int status;
        OK(waitpid(child, &status, 0));
        if (status != 0) say("child %d: 0x%x", i, status);
    }
    over = 1;
    finish(threads[0]);
    finish(threads[1]);
    send_text(fd, "done");
}

static void partner(int fd) { hear(fd, 4); }

SUBJECT_AND_PARTNER(subject, partner)
