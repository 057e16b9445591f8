// Several pieces of memory, empty ones between, in both directions; the flags that come back.
#include "dual.h"

static void subject(int fd) {
    struct iovec out[5] = {{"ab", 2}, {NULL, 0}, {"cde", 3}, {"", 0}, {"f", 1}};
    struct msghdr message = {.msg_iov = out, .msg_iovlen = 5};
    TRY(sendmsg(fd, &message, 0));
    char a[3], b[1], c[100];
    struct iovec in[4] = {{a, 3}, {NULL, 0}, {b, 1}, {c, 100}};
    message = (struct msghdr){.msg_iov = in, .msg_iovlen = 4, .msg_flags = -1};
    settle(fd, 10);
    TRY(recvmsg(fd, &message, MSG_PEEK));
    TRY(recvmsg(fd, &message, 0));
    say("%.3s %.1s %.6s flags %x", a, b, c, message.msg_flags);
    TRY(recvmsg(fd, &message, MSG_DONTWAIT));
    message.msg_iovlen = 0;
    TRY(recvmsg(fd, &message, MSG_DONTWAIT));
    TRY(sendmsg(fd, &message, 0));
    meet();
    message = (struct msghdr){.msg_iov = in, .msg_iovlen = 4};
    TRY(recvmsg(fd, &message, MSG_WAITALL));
    say("%.3s %.1s %.100s", a, b, c);
}

static void partner(int fd) {
    hear(fd, 6);
    send_text(fd, "0123456789");
    meet();
    fill(buf, 100, 0);
    for (int i = 0; i < 104; i++) buf[i] = 'a' + i % 26;
    send_all(fd, buf, 50);
    send_all(fd, buf + 50, 54);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
