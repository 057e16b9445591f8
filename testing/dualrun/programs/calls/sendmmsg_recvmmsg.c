// Several messages in one call.
#include "dual.h"

static void subject(int fd) {
    struct iovec out[3] = {{"one", 3}, {"four", 4}, {"eleven", 6}};
    struct mmsghdr messages[3] = {0};
    for (int i = 0; i < 3; i++) messages[i].msg_hdr = (struct msghdr){.msg_iov = &out[i], .msg_iovlen = 1};
    TRY(sendmmsg(fd, messages, 3, 0));
    for (int i = 0; i < 3; i++) say("sent %u", messages[i].msg_len);
    settle(fd, 10);
    char a[4], b[4], c[4];
    struct iovec in[3] = {{a, 4}, {b, 4}, {c, 4}};
    for (int i = 0; i < 3; i++) messages[i].msg_hdr = (struct msghdr){.msg_iov = &in[i], .msg_iovlen = 1};
    TRY(recvmmsg(fd, messages, 3, 0, NULL));
    for (int i = 0; i < 3; i++) say("received %u", messages[i].msg_len);
    TRY(recvmmsg(fd, messages, 3, MSG_DONTWAIT, NULL));
    meet();
    TRY(recvmmsg(fd, messages, 3, MSG_WAITFORONE, NULL));
    say("%.4s", a);
    TRY(recvmmsg(fd, messages, 0, 0, NULL));
    TRY(sendmmsg(fd, messages, 0, 0));
    TRY(sendmmsg(fd, messages, 0, -1));
    TRY(recvmmsg(fd, messages, 0, -1, NULL));
}

static void partner(int fd) {
    hear(fd, 13);
    send_text(fd, "0123456789");
    meet();
    send_text(fd, "more");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
