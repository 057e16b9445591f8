// TCP_INFO tells the state of the connection on its way to the end.
#include "dual.h"

static int state(int fd) {
    struct tcp_info info;
    socklen_t length = sizeof info;
    OK(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length));
    return info.tcpi_state;
}

// The kernel lets poll see the peer's end a moment before the state changes.
static int state_after(int fd, int one, int other) {
    int now;
    while ((now = state(fd)) == one || now == other) sched_yield();
    return now;
}

static void subject(int fd) {
    say("established: %d", state(fd) == TCP_ESTABLISHED);
    send_text(fd, "x");
    meet();
    OK(shutdown(fd, SHUT_WR));
    say("still established: %d", state(fd) == TCP_ESTABLISHED);
    meet();
    settle_end(fd);
    int now = state_after(fd, TCP_FIN_WAIT1, TCP_FIN_WAIT2);
    say("closing: %d", now == TCP_CLOSE_WAIT || now == TCP_TIME_WAIT || now == TCP_CLOSE || now == TCP_CLOSING);
}

static void partner(int fd) {
    hear(fd, 1);
    meet();
    settle_end(fd);
    say("the peer has shut: %d", state_after(fd, TCP_ESTABLISHED, 0) == TCP_CLOSE_WAIT);
    meet();
    OK(shutdown(fd, SHUT_WR));
}

SUBJECT_AND_PARTNER(subject, partner)
