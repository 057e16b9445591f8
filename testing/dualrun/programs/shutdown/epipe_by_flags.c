// What only TCP can send, behind the end: each flag has an error of its own, and the signal that belongs to it.
#include "dual.h"

static volatile sig_atomic_t raised;

static void note(int signal) {
    (void)signal;
    raised++;
}

static void subject(int fd) {
    int on = 1;
    handle(SIGPIPE, note, 0);
    TRY(setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on));
    send_text(fd, "data");
    TRY(shutdown(fd, SHUT_WR));
    TRY(send(fd, "x", 1, MSG_FASTOPEN));
    TRY(sendto(fd, "x", 1, MSG_FASTOPEN, NULL, 0));
    say("%d", raised);
    TRY(send(fd, "x", 1, MSG_FASTOPEN | MSG_OOB));
    say("%d", raised);
    TRY(send(fd, "x", 1, MSG_OOB));
    say("%d", raised);
    TRY(send(fd, "x", 1, MSG_OOB | MSG_NOSIGNAL));
    say("%d", raised);
    struct iovec piece = {"x", 1};
    TRY(sendmsg(fd, &(struct msghdr){.msg_iov = &piece, .msg_iovlen = 1}, MSG_OOB));
    say("%d", raised);
    TRY(send(fd, "x", 1, MSG_ZEROCOPY));
    say("%d", raised);
    TRY(send(fd, "x", 1, MSG_ZEROCOPY | MSG_NOSIGNAL));
    say("%d", raised);
    tell();
}

static void partner(int fd) {
    recv_to_end(fd);
    await();
}

SUBJECT_AND_PARTNER(subject, partner)
