// MSG_TRUNC with no buffer: so many bytes are taken, or with MSG_PEEK counted, and nothing is written anywhere.
#include "dual.h"

static void subject(int fd) {
    settle(fd, 10);
    struct iovec none[2] = {{NULL, 3}, {NULL, 4}};
    struct iovec half[2] = {{buf, 3}, {NULL, 4}};
    struct msghdr nothing = {.msg_iov = none, .msg_iovlen = 2}, part = {.msg_iov = half, .msg_iovlen = 2};
    TRY(recv(fd, NULL, 4, MSG_PEEK));
    TRY(recv(fd, NULL, 4, MSG_PEEK | MSG_TRUNC));
    TRY(recv(fd, NULL, 400, MSG_PEEK | MSG_TRUNC));
    TRY(recv(fd, NULL, 0, MSG_PEEK | MSG_TRUNC));
    TRY(recv(fd, buf, 0, MSG_PEEK | MSG_TRUNC));
    strcpy(buf, "untouched");
    TRY(recv(fd, buf, 4, MSG_PEEK | MSG_TRUNC));
    say("%s", buf);
    TRY(recvfrom(fd, NULL, 400, MSG_PEEK | MSG_TRUNC, NULL, NULL));
    TRY(recvmsg(fd, &nothing, MSG_PEEK | MSG_TRUNC));
    TRY(recvmsg(fd, &part, MSG_PEEK | MSG_TRUNC));
    TRY(recvmsg(fd, &nothing, MSG_PEEK));
    TRY(recv(fd, NULL, 2, MSG_TRUNC));
    TRY(recvmsg(fd, &nothing, MSG_TRUNC));
    TRY(recv(fd, NULL, 400, MSG_TRUNC));
    TRY(recv(fd, NULL, 400, MSG_TRUNC | MSG_DONTWAIT));
    TRY(recv(fd, NULL, 400, MSG_TRUNC | MSG_PEEK | MSG_DONTWAIT));
    meet();
    TRY(recv(fd, NULL, 300000, MSG_TRUNC | MSG_WAITALL));
    hear(fd, 3);
    meet();
    settle_end(fd);
    TRY(recv(fd, NULL, 400, MSG_TRUNC | MSG_PEEK));
    TRY(recv(fd, NULL, 400, MSG_TRUNC));
}

static void partner(int fd) {
    send_text(fd, "0123456789");
    meet();
    send_filled(fd, 300000);
    send_text(fd, "end");
    meet();
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
