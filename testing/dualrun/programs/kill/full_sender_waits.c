// The receiver, which does not read, is killed while the sender waits for room, in send and in poll.
#include "dual.h"

static void subject(void) {
    int fds[2];
    connected_twice(fds);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 2; i++) {
        if (i == 0) OK(fcntl(fds[i], F_SETFL, O_NONBLOCK));
        fill(buf, sizeof buf, 0);
        tell_number(getpid());
        ssize_t sent;
        for (;;) {
            while ((sent = send(fds[i], buf, sizeof buf, 0)) > 0) {}
            if (errno != EAGAIN) break;
            struct pollfd room = {.fd = fds[i], .events = POLLOUT};
            OK(poll(&room, 1, -1));
        }
        say("%s", errno == EPIPE || errno == ECONNRESET ? "found out" : strerrorname_np(errno));
    }
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    for (int i = 0; i < 2; i++) {
        pid_t child = OK(fork());
        if (child == 0) {
            if (i == 0) OK(close(fds[1]));
            for (;;) pause();
        }
        OK(close(fds[i]));
        wait_asleep(await_number());
        OK(kill(child, SIGKILL));
        say_child("receiver", child);
        // The other connection is still here for the next round.
    }
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
