// Without SA_RESTART a signal ends each way to wait for data, unless some has come.
#include "alarms.h"

static void subject(int fd) {
    struct iovec piece = {buf, 10};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    struct mmsghdr messages = {message, 0};
    alarms_begin(0);
    TRY(recv(fd, buf, 10, 0));
    TRY(read(fd, buf, 10));
    TRY(readv(fd, &piece, 1));
    TRY(recvfrom(fd, buf, 10, 0, NULL, NULL));
    TRY(recvmsg(fd, &message, 0));
    TRY(recvmmsg(fd, &messages, 1, 0, NULL));
    TRY(recv(fd, buf, 10, MSG_PEEK));
    TRY(recv(fd, buf, 10, MSG_WAITALL));
    alarms_end();
    tell();
    settle(fd, 4);
    alarms_begin(0);
    TRY(recv(fd, buf, 10, MSG_WAITALL)); // with some there, some is what comes back
    alarms_end();
}

static void partner(int fd) {
    await();
    send_text(fd, "some");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
