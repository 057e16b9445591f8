// Passing a connection over a Unix socket.
#ifndef DUAL_PASSING_H
#define DUAL_PASSING_H

#include "dual.h"

SHARED void pass(int over, int fd) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    char byte = 'f';
    struct iovec piece = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    control.header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    if (sendmsg(over, &message, 0) != 1) die(__LINE__, "pass");
}

SHARED int take(int over) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    char byte;
    struct iovec piece = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(over, &message, MSG_CMSG_CLOEXEC) != 1 || control.header.cmsg_type != SCM_RIGHTS) die(__LINE__, "take");
    int fd;
    memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
    return fd;
}

#endif
