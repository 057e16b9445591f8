// A thread that waits for the end alone, in poll or in a set, beside one that receives: both sleep when bytes come, and these are for the other.
#include "epoll.h"
#include <poll.h>

enum { TIMES = 200 };

static int fd;
static volatile int receiver;

static void *polls(void *) {
    struct pollfd it = {.fd = fd, .events = POLLRDHUP};
    int count = poll(&it, 1, -1);
    say("poll: %d, %s", count, events(it.revents));
    return NULL;
}

static void *waits(void *) {
    int set = set_of(fd, EPOLLRDHUP);
    say_set("in a set", set, -1);
    OK(close(set));
    return NULL;
}

// Lets the peer send once both sleep.
static void *lets(void *) {
    for (int i = 0; i < TIMES; i++) {
        wait_asleep(receiver);
        tell();
        await();
    }
    return NULL;
}

static void with(void *(*watch)(void *)) {
    fd = connected();
    receiver = gettid();
    pthread_t watcher = start(watch, NULL), other = start(lets, NULL);
    int same = 0;
    for (int i = 0; i < TIMES; i++) {
        char word[5] = "";
        same += recv_all(fd, word, 4) == 4 && strcmp(word, "data") == 0;
        send_text(fd, "more");
    }
    finish(other);
    say("%d heard", same);
    tell();
    finish(watcher);
    recv_to_end(fd);
    OK(close(fd));
}

static void subject(void) {
    with(polls);
    with(waits);
}

static void partner(void) {
    for (int round = 0; round < 2; round++) {
        fd = connected();
        for (int i = 0; i < TIMES; i++) {
            await();
            send_text(fd, "data");
            char word[4];
            if (recv_all(fd, word, 4) != 4) die(__LINE__, "an end");
            tell();
        }
        await();
        OK(shutdown(fd, SHUT_WR));
        recv_to_end(fd);
        OK(close(fd));
    }
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
