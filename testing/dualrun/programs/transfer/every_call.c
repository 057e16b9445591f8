// One stream written and read by every call in turn: nothing is lost between them.
#include "dual.h"

enum { ROUNDS = 300 };

static void subject(int fd) {
    uint64_t at = 0;
    for (int i = 0; i < ROUNDS; i++) {
        size_t length = 1 + (i * 37) % 5000;
        fill(buf, length, at);
        struct iovec pieces[2] = {{buf, length / 3}, {buf + length / 3, length - length / 3}};
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
        struct mmsghdr messages = {message, 0};
        ssize_t sent = 0;
        if (i % 6 == 0) sent = send(fd, buf, length, 0);
        if (i % 6 == 1) sent = write(fd, buf, length);
        if (i % 6 == 2) sent = writev(fd, pieces, 2);
        if (i % 6 == 3) sent = sendmsg(fd, &message, 0);
        if (i % 6 == 4) sent = sendmmsg(fd, &messages, 1, 0) == 1 ? (ssize_t)messages.msg_len : -1;
        if (i % 6 == 5) sent = pwritev2(fd, pieces, 2, -1, 0);
        if (sent != (ssize_t)length) die(__LINE__, "a part");
        at += length;
    }
    OK(shutdown(fd, SHUT_WR));
    say("%lu bytes", (unsigned long)at);
    recv_to_end(fd);
}

static void partner(int fd) {
    uint64_t at = 0;
    for (int i = 0;; i++) {
        size_t length = 1 + (i * 53) % 5000;
        struct iovec pieces[2] = {{buf, length / 4}, {buf + length / 4, length - length / 4}};
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
        struct mmsghdr messages = {message, 0};
        ssize_t got = 0;
        if (i % 7 == 0) got = recv(fd, buf, length, 0);
        if (i % 7 == 1) got = read(fd, buf, length);
        if (i % 7 == 2) got = readv(fd, pieces, 2);
        if (i % 7 == 3) got = recvmsg(fd, &message, 0);
        if (i % 7 == 4) got = recvmmsg(fd, &messages, 1, 0, NULL) == 1 ? (ssize_t)messages.msg_len : -1;
        if (i % 7 == 5) got = preadv2(fd, pieces, 2, -1, 0);
        if (i % 7 == 6) got = recvfrom(fd, buf, length, 0, NULL, NULL);
        if (got < 0) die(__LINE__, "received");
        if (got == 0) break;
        if (!as_filled(buf, got, at)) die(__LINE__, "not as sent");
        at += got;
    }
    say("%lu bytes", (unsigned long)at);
}

SUBJECT_AND_PARTNER(subject, partner)
