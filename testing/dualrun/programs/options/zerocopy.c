// SO_ZEROCOPY: the data arrives, and the error queue tells that the memory is free again.
#include "dual.h"
#include <linux/errqueue.h>

static void subject(int fd) {
    TRY(send(fd, "without", 7, MSG_ZEROCOPY)); // ignored unless the option is set
    TRY(setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &(int){1}, sizeof(int)));
    fill(buf, 100000, 0);
    TRY(send(fd, buf, 100000, MSG_ZEROCOPY));
    // ERR is reported though it was not asked for.
    struct pollfd told = {.fd = fd, .events = 0};
    TRY(poll(&told, 1, -1));
    say("%s", events(told.revents));
    char control[200];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    TRY(recvmsg(fd, &message, MSG_ERRQUEUE));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    struct sock_extended_err error = {0};
    if (header) memcpy(&error, CMSG_DATA(header), sizeof error);
    say("origin %d, errno %d, from %u to %u", error.ee_origin, error.ee_errno, error.ee_info, error.ee_data);
    hear(fd, 2);
    // What the partner's send has left to do it has done.
    await();
}

static void partner(int fd) {
    hear(fd, 7);
    recv_filled(fd, 100000);
    send_text(fd, "ok");
    tell();
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
