// A thread that waits for room in poll beside one that polls for bytes: both sleep when bytes come, and these are for the other.
#include "dual.h"
#include <poll.h>

enum { TIMES = 200 };

static int fd;
static volatile int reader;

static struct pollfd room = {.events = POLLOUT};

// Over rings it sleeps all the time: there is none. TCP may find some more.
static void *waits_for_room(void *) {
    OK(poll(&room, 1, -1));
    return NULL;
}

// Lets the peer send once the reader sleeps.
static void *lets(void *) {
    for (int i = 0; i < TIMES; i++) {
        wait_asleep(reader);
        tell();
        await();
    }
    return NULL;
}

static void subject(void) {
    fd = connected();
    OK(fcntl(fd, F_SETFL, O_NONBLOCK));
    memset(buf, 0, 4096);
    while (send(fd, buf, 4096, MSG_NOSIGNAL) > 0 || send(fd, buf, 1, MSG_NOSIGNAL) > 0) {}
    reader = gettid();
    room.fd = fd;
    pthread_t writer = start(waits_for_room, NULL), other = start(lets, NULL);
    int same = 0;
    for (int i = 0; i < TIMES; i++) {
        struct pollfd it = {.fd = fd, .events = POLLIN};
        OK(poll(&it, 1, -1));
        char word[5] = "";
        same += recv(fd, word, 4, 0) == 4 && strcmp(word, "data") == 0;
    }
    finish(other);
    say("%d heard", same);
    tell();
    finish(writer);
    say("room: %s", events(room.revents));
    OK(fcntl(fd, F_SETFL, 0));
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

static void partner(void) {
    fd = connected();
    for (int i = 0; i < TIMES; i++) {
        await();
        send_text(fd, "data");
        tell();
    }
    await();
    while (recv(fd, buf, sizeof buf, 0) > 0) {}
    OK(close(fd));
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
