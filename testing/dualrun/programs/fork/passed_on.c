// The connection is made, and forked at once. The parent passes its copy on to a process that was there before, and closes it: the child is not the only one
// that has it, though all that had it by fork have left.
#include "passing.h"

static void holds(int over, int done) {
    int fd = take(over);
    if (read(done, buf, 1) != 0) die(__LINE__, "the child");
    send_text(fd, "from the other");
    hear(fd, 3);
    _exit(0);
}

static void subject(void) {
    int over[2], done[2], closed[2];
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, over));
    OK(pipe(done));
    pid_t other = OK(fork());
    if (other == 0) {
        OK(close(done[1]));
        holds(over[1], done[0]);
    }
    OK(pipe(closed));
    int fd = connected_by(AF_INET);
    pid_t child = OK(fork());
    if (child == 0) {
        OK(close(closed[1]));
        OK(read(closed[0], buf, 1)); // comes to its end when the parent has passed it on and closed it
        warm_up(fd);
        send_text(fd, "from the child");
        _exit(0);
    }
    pass(over[0], fd);
    OK(close(fd));
    OK(close(closed[1]));
    say_child("child", child);
    OK(close(done[1]));
    say_child("other", other);
}

static void partner(void) {
    int fd = connected_by(AF_INET);
    warm_up(fd);
    hear(fd, 14);
    hear(fd, 14);
    send_text(fd, "yes");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
