// The peer sees the end only when both copies are closed; shutdown in one ends it for both.
#include "dual.h"

static void subject(void) {
    int fds[2], gate[2];
    connected_twice(fds);
    OK(pipe(gate));
    pid_t child = OK(fork());
    if (child == 0) {
        OK(read(gate[0], buf, 1));
        send_text(fds[0], "child");
        OK(shutdown(fds[1], SHUT_WR));
        OK(close(fds[0]));
        _exit(0);
    }
    OK(close(fds[0]));
    tell();
    await();
    OK(write(gate[1], "", 1));
    say_child("child", child);
    TRY(send(fds[1], "x", 1, MSG_NOSIGNAL));
    tell();
    recv_to_end(fds[1]);
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    await();
    say_poll("the parent has closed", fds[0], POLLIN | POLLRDHUP, 0);
    tell();
    recv_to_end(fds[1]);
    hear(fds[0], 5);
    recv_to_end(fds[0]);
    await();
    send_filled(fds[1], 1000);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
