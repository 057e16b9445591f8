// One thread waits in an edge-triggered set and takes nothing; another, which sleeps in recv or in poll, gets all messages.
#include "epoll.h"

enum { MESSAGES = 40 };

static int set;
static volatile int done;

static void *watches(void *with) {
    while (!done) {
        struct epoll_event event;
        epoll_wait(set, &event, 1, -1);
    }
    return with;
}

static void subject(int fd) {
    set = set_of(fd, EPOLLIN | EPOLLET);
    pthread_t thread = start(watches, NULL);
    for (int polls = 0; polls < 2; polls++) {
        int right = 0;
        for (int i = 0; i < MESSAGES; i++) {
            char byte;
            tell();
            struct pollfd one = {.fd = fd, .events = POLLIN};
            if (polls) poll(&one, 1, -1);
            right += recv(fd, &byte, 1, 0) == 1 && byte == (char)i;
        }
        say("%s: %d right", polls ? "poll" : "recv", right);
    }
    done = 1;
    meet();
    finish(thread);
    TRY(recv(fd, buf, 1, 0));
}

static void partner(int fd) {
    for (int i = 0; i < 2 * MESSAGES; i++) {
        char byte = i % MESSAGES;
        await();
        // The other end is about to sleep, or does.
        for (int yields = 0; yields < 100; yields++) sched_yield();
        send_all(fd, &byte, 1);
    }
    meet();
    send_text(fd, "x");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
