// A process passes a connection to itself, and leaves one in a queue that is closed.
#include "passing.h"
#include "talk.h"

static void again(const char *what, int fd) { say("%s %d", what, fd); }

static void subject(int fd) {
    int over[2];
    OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, over));
    pass(over[0], fd);
    int twin = take(over[1]);
    say("another number: %d", twin != fd);
    OK(close(fd));
    talk("the twin", twin, twin);
    pass(over[0], twin);
    OK(close(twin));
    OK(close(over[0]));
    OK(close(over[1])); // with the connection in the queue, which closes it
    await();
}

static void partner(int fd) {
    listen_to_talk(fd);
    recv_to_end(fd);
    tell();
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
