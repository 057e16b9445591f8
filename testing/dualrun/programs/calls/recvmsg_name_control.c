// A stream gives no name, and no control data, but SO_TIMESTAMP may; sizes come back as they were found.
#include "dual.h"

static void subject(int fd) {
    struct sockaddr_storage name;
    char control[200];
    struct iovec in = {buf, 100};
    struct msghdr message = {.msg_name = &name,
                             .msg_namelen = sizeof name,
                             .msg_iov = &in,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    settle(fd, 4);
    TRY(recvmsg(fd, &message, MSG_CMSG_CLOEXEC));
    say("name %u, control %zu, flags %x", (unsigned)message.msg_namelen, message.msg_controllen,
        message.msg_flags & ~MSG_CMSG_CLOEXEC);
    // Descriptors cannot be passed over TCP; unknown control of SOL_SOCKET is refused.
    int zero = 0;
    struct {
        struct cmsghdr header;
        int fd;
    } rights = {{CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}, zero};
    struct iovec out = {"x", 1};
    message = (struct msghdr){.msg_iov = &out, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights};
    TRY(sendmsg(fd, &message, 0));
    rights.header.cmsg_type = 99;
    TRY(sendmsg(fd, &message, 0));
    message = (struct msghdr){.msg_iov = &out, .msg_iovlen = 1};
    TRY(sendmsg(fd, &message, 0));
    TRY(shutdown(fd, SHUT_WR));
    hear(fd, 1);
}

static void partner(int fd) {
    send_text(fd, "data");
    while (recv(fd, buf, 100, 0) > 0) {}
    shutdown(fd, SHUT_WR);
}

SUBJECT_AND_PARTNER(subject, partner)
