// SO_RCVTIMEO: each way to wait for data gives up with EAGAIN, with what has come if some has.
#include "dual.h"

static void subject(int fd) {
    struct timeval some = {0, 30000}, got;
    socklen_t length = sizeof got;
    OK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &some, sizeof some));
    OK(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &got, &length));
    say("about what was set: %d", got.tv_sec == 0 && got.tv_usec >= 30000 && got.tv_usec < 50000);
    struct iovec piece = {buf, 10};
    TRY(recv(fd, buf, 10, 0));
    TRY(read(fd, buf, 10));
    TRY(readv(fd, &piece, 1));
    TRY(recvmsg(fd, &(struct msghdr){.msg_iov = &piece, .msg_iovlen = 1}, 0));
    TRY(recv(fd, buf, 10, MSG_PEEK));
    tell();
    settle(fd, 4);
    TRY(recv(fd, buf, 10, MSG_WAITALL));
    TRY(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0, -1}, sizeof some));
    TRY(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0, 0}, sizeof some));
    tell();
    hear(fd, 4);
}

static void partner(int fd) {
    await();
    send_text(fd, "some");
    await();
    send_text(fd, "more");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
