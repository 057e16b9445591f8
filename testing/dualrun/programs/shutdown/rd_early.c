// SHUT_RD at once, long before the connection has carried much: what comes can be read, between it is the end, and what was sent is not lost.
#include "dual.h"

enum { TURNS = 100 };

// Who only looks at how much has come acknowledges nothing soon.
static int connected_at_once(void) {
    int fd = connected_by(AF_INET);
    OK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)));
    return fd;
}

static void subject(void) {
    int fd = connected_at_once();
    TRY(shutdown(fd, SHUT_RD));
    for (int turn = 0; is_warm && turn < TURNS; turn++) {
        settle(fd, 4);
        OK(recv(fd, buf, 4, 0));
        send_text(fd, "nrut");
    }
    say_poll("nothing has come", fd, POLLIN | POLLRDHUP | POLLOUT, 0);
    send_text(fd, "unread");
    TRY(recv(fd, buf, 1, MSG_DONTWAIT));
    TRY(recv(fd, buf, 1, 0));
    meet();
    settle(fd, 5);
    hear(fd, 5);
    TRY(recv(fd, buf, 1, 0));
    TRY(send(fd, "x", 1, MSG_NOSIGNAL));
    say_poll("all is read", fd, POLLIN | POLLRDHUP | POLLOUT, 0);
    tell();
    await();
    TRY(close(fd));
}

static void partner(void) {
    int fd = connected_at_once();
    for (int turn = 0; is_warm && turn < TURNS; turn++) {
        send_text(fd, "turn");
        recv_all(fd, buf, 4);
    }
    meet();
    send_text(fd, "after");
    await();
    hear(fd, 7);
    tell();
    TRY(recv(fd, buf, 1, 0));
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
