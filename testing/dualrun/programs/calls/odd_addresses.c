// Addresses that are no memory, or of lengths that none has, beside the bytes of a connection.
#include "dual.h"

static void message(int fd, const char *what, void *name, socklen_t length) {
    struct iovec one = {"message", 7};
    struct msghdr header = {.msg_name = name, .msg_namelen = length, .msg_iov = &one, .msg_iovlen = 1};
    say("%s", what);
    TRY(sendmsg(fd, &header, 0));
    one.iov_base = buf;
    TRY(recvmsg(fd, &header, MSG_DONTWAIT | MSG_PEEK));
}

static void subject(int fd) {
    void *nowhere = (void *)(opaque(0) + 16);
    static struct sockaddr_storage address;
    struct sockaddr *name = (struct sockaddr *)&address;
    loopback(AF_INET, htons(9), &address);
    TRY(sendto(fd, "a", 1, 0, nowhere, 16));
    TRY(sendto(fd, "b", 1, 0, nowhere, 0));
    TRY(sendto(fd, "c", 1, 0, nowhere, -1));
    TRY(sendto(fd, "d", 1, 0, name, 129));
    TRY(sendto(fd, "e", 1, 0, name, 128));
    TRY(sendto(fd, "f", 1, 0, name, -1));
    TRY(sendto(fd, "g", 1, 0, NULL, 129));
    TRY(sendto(fd, "h", 1, 0, NULL, -1));
    TRY(sendto(fd, "i", 1, 0, name, 1));
    meet();
    settle(fd, 10);
    socklen_t length = -1;
    TRY(recvfrom(fd, buf, 1, 0, name, NULL));
    TRY(recvfrom(fd, buf, 1, 0, name, nowhere));
    TRY(recvfrom(fd, buf, 1, 0, name, &length));
    say("length %d", (int)length);
    TRY(recvfrom(fd, buf, 1, 0, NULL, nowhere));
    length = 0;
    TRY(recvfrom(fd, buf, 1, 0, nowhere, &length));
    length = 16;
    TRY(recvfrom(fd, buf, 1, 0, nowhere, &length));
    say("length %d", (int)length);
    message(fd, "no memory", nowhere, 16);
    message(fd, "below zero", &address, -1);
    message(fd, "null, below zero", NULL, -1);
    message(fd, "null", NULL, 16);
    message(fd, "long", &address, 1000);
    message(fd, "nothing of it", nowhere, 0);
    hear(fd, 4);
}

static void partner(int fd) {
    hear(fd, 5);
    meet();
    send_text(fd, "0123456789");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
