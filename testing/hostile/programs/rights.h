// A descriptor handed to another process.
#pragma once
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

// What sendmsg says.
static inline int pass(int over, int fd) {
    union { char room[CMSG_SPACE(sizeof(int))]; struct cmsghdr header; } control = {0};
    struct iovec part = {"x", 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    control.header = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    return sendmsg(over, &message, 0);
}

// What was passed, or -1 if nothing was. Nothing more comes that way.
static inline int take(int over) {
    union { char room[CMSG_SPACE(sizeof(int))]; struct cmsghdr header; } control = {0};
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(over, &message, 0) != 1 || message.msg_controllen == 0) return -1;
    int fd;
    memcpy(&fd, CMSG_DATA(&control.header), sizeof fd);
    close(over);
    return fd;
}
