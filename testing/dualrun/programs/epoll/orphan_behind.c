// A member whose descriptor is closed, and that lives on as a duplicate, is told of for as long as something is unread, also where the sender goes back to
// TCP after it was waited for.
#include "epoll.h"

static void subject(int fd) {
    int set = set_of(fd, EPOLLIN);
    say_set("nothing yet", set, 20);
    int other = OK(dup(fd));
    OK(close(fd));
    tell();
    say_set("some", set, 10000);
    settle(other, 12);
    hear(other, 4);
    say_set("less", set, 10000);
    hear(other, 4);
    say_set("still less", set, 10000);
    hear(other, 4);
    say_set("nothing", set, 0);
    OK(close(other));
    OK(close(set));
}

static void partner(int fd) {
    await();
    // From here on TCP carries what is sent.
    OK(setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &(unsigned){500000000}, sizeof(unsigned)));
    send_text(fd, "here is more");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
