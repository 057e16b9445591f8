// A look into several buffers, the first of which has no room: on a connection as it is, and on one that urgent data have taken back to TCP.
#include "dual.h"

static void look(int fd) {
    char text[8];
    struct iovec pieces[] = {{buf, 0}, {text, 4}, {buf, 0}, {text + 4, 4}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    say_poll("before", fd, POLLIN, -1);
    TRY(recvmsg(fd, &message, MSG_PEEK));
    TRY(recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT));
    hear(fd, 4);
}

static void subject(int fd) {
    look(fd);
    tell();
    look(fd);
    tell();
}

static void partner(int fd) {
    send_text(fd, "four");
    await();
    OK(send(fd, "!", 1, MSG_OOB));
    send_text(fd, "five");
    await();
}

SUBJECT_AND_PARTNER(subject, partner)
