// The time of recvmmsg is looked at after each message: it ends the call once something has come.
#include "dual.h"

static void subject(int fd) {
    char a[4], b[4];
    struct iovec in[2] = {{a, 4}, {b, 4}};
    struct mmsghdr messages[2] = {{{.msg_iov = &in[0], .msg_iovlen = 1}, 0}, {{.msg_iov = &in[1], .msg_iovlen = 1}, 0}};
    struct timespec none = {0, 0}, bad = {0, -1};
    settle(fd, 8);
    TRY(recvmmsg(fd, messages, 2, 0, &none));
    say("%.4s", a);
    TRY(recvmmsg(fd, messages, 2, 0, &bad));
    hear(fd, 4);
}

static void partner(int fd) {
    send_text(fd, "12345678");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
