// The peer closed: the end is read as often as one likes; a first write may go, a later one fails.
#include "dual.h"

static void subject(int fd) {
    signal(SIGPIPE, SIG_IGN);
    await();
    settle_end(fd);
    say_poll("closed", fd, POLLIN | POLLOUT | POLLRDHUP, 0);
    hear(fd, 4);
    TRY(recv(fd, buf, 1, 0));
    TRY(recv(fd, buf, 1, MSG_DONTWAIT));
    TRY(send(fd, "x", 1, 0));
    struct pollfd reset = {.fd = fd, .events = 0};
    while (!(reset.revents & POLLERR) && !(reset.revents & POLLHUP)) OK(poll(&reset, 1, -1));
    TRY(send(fd, "x", 1, 0));
    TRY(recv(fd, buf, 1, 0));
}

static void partner(int fd) {
    send_text(fd, "last");
    TRY(close(fd));
    tell();
}

SUBJECT_AND_PARTNER(subject, partner)
