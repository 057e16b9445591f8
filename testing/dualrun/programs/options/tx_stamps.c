// SO_TIMESTAMPING, set on a connection that may have left TCP: from then on TCP carries what is sent, and the error queue tells of it, and of nothing else.
#include "carried.h"
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>

static void hear_stamp(int fd) {
    struct pollfd told = {.fd = fd, .events = 0};
    TRY(poll(&told, 1, -1));
    say("%s", events(told.revents));
    char control[400];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    TRY(recvmsg(fd, &message, MSG_ERRQUEUE));
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        struct sock_extended_err error;
        if (header->cmsg_level != SOL_IP) continue;
        memcpy(&error, CMSG_DATA(header), sizeof error);
        say("origin %d, of kind %d", error.ee_origin, error.ee_info);
    }
    TRY(recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT));
}

static void subject(int fd) {
    int received = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    int both = received | SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY;
    TRY(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &received, sizeof received));
    tell_number(gettid());
    hear(fd, 4);
    TRY(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &both, sizeof both));
    send_text(fd, "stamp");
    hear_stamp(fd);
    // Who has slept here was rung for.
    tell_number(gettid());
    hear(fd, 4);
    TRY(recv(fd, buf, 1, MSG_ERRQUEUE | MSG_DONTWAIT));
    say_whether_carried("stamped", fd);
    hear(fd, 4);
}

static void partner(int fd) {
    for (int i = 0; i < 2; i++) {
        wait_asleep(await_number());
        send_text(fd, "wake");
        if (i == 0) hear(fd, 5);
    }
    see_carried(fd);
    send_text(fd, "done");
}

SUBJECT_AND_PARTNER(subject, partner)
