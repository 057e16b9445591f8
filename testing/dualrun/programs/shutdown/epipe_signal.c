// Writing to a connection that is no more raises SIGPIPE in the thread that writes.
#include "dual.h"

static volatile sig_atomic_t raised;

static void note(int signal) {
    (void)signal;
    raised++;
}

static void subject(int fd) {
    handle(SIGPIPE, note, 0);
    TRY(shutdown(fd, SHUT_WR));
    TRY(send(fd, "x", 1, 0));
    say("%d", raised);
    TRY(write(fd, "x", 1));
    say("%d", raised);
    TRY(send(fd, "x", 1, MSG_NOSIGNAL));
    say("%d", raised);
    struct iovec piece = {"x", 1};
    TRY(writev(fd, &piece, 1));
    say("%d", raised);
    TRY(sendmsg(fd, &(struct msghdr){.msg_iov = &piece, .msg_iovlen = 1}, MSG_NOSIGNAL));
    say("%d", raised);
    TRY(sendto(fd, "x", 1, 0, NULL, 0));
    say("%d", raised);
    TRY(send(fd, "x", 0, 0));
    say("%d", raised);
    tell();
}

static void partner(int fd) {
    recv_to_end(fd);
    await();
}

SUBJECT_AND_PARTNER(subject, partner)
