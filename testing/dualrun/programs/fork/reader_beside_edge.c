// The parent waits in an edge-triggered set and takes nothing; its child, which sleeps in recv, gets all messages.
#include "epoll.h"

enum { MESSAGES = 40 };

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN | EPOLLET);
    int over[2];
    OK(pipe(over));
    OK(control(set, EPOLL_CTL_ADD, over[0], EPOLLIN));
    pid_t child = OK(fork());
    if (child == 0) {
        int right = 0;
        for (int i = 0; i < MESSAGES; i++) {
            char byte;
            tell();
            right += recv(fd, &byte, 1, 0) == 1 && byte == (char)i;
        }
        say("%d right", right);
        _exit(7);
    }
    close(over[1]);
    for (struct epoll_event event = {.data.fd = fd}; event.data.fd == fd;) epoll_wait(set, &event, 1, -1);
    say_child("child", child);
}

static void partner(int fd) {
    for (int i = 0; i < MESSAGES; i++) {
        char byte = i;
        await();
        // The other end is about to sleep, or does.
        for (int yields = 0; yields < 100; yields++) sched_yield();
        send_all(fd, &byte, 1);
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
