// The end and the reset are told to each of the calls that ask: recv, read, readv, recvmsg, recvmmsg.
#include "dual.h"

static void subject(int fd) {
    settle_end(fd);
    struct iovec piece = {buf, 10};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    struct mmsghdr messages = {message, 0};
    TRY(read(fd, buf, 10));
    TRY(readv(fd, &piece, 1));
    TRY(recvfrom(fd, buf, 10, 0, NULL, NULL));
    TRY(recvmsg(fd, &message, 0));
    TRY(recvmmsg(fd, &messages, 1, 0, NULL));
    say("%u", messages.msg_len);
    TRY(recv(fd, buf, 10, MSG_PEEK));
    TRY(recv(fd, buf, 10, MSG_WAITALL));
    int left;
    TRY(ioctl(fd, FIONREAD, &left));
    say("%d", left);
    tell();
}

static void partner(int fd) {
    shutdown(fd, SHUT_WR);
    await();
}

SUBJECT_AND_PARTNER(subject, partner)
