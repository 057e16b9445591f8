// Nothing to send after the end has been said: which calls fail, and which raise SIGPIPE.
#include "dual.h"

static volatile sig_atomic_t raised;

static void note(int signal) {
    (void)signal;
    raised++;
}

#define TRY_AND_COUNT(call)                                                                                            \
    do {                                                                                                               \
        raised = 0;                                                                                                    \
        TRY(call);                                                                                                     \
        say("SIGPIPE %d", raised);                                                                                     \
    } while (0)

static void every_call(int fd) {
    struct iovec empty[2] = {{buf, 0}, {NULL, 0}};
    struct mmsghdr two[2] = {{.msg_hdr = {.msg_iov = empty, .msg_iovlen = 2}}, {.msg_hdr = {.msg_iov = NULL}}};
    TRY_AND_COUNT(send(fd, buf, 0, 0));
    TRY_AND_COUNT(send(fd, NULL, 0, 0));
    TRY_AND_COUNT(send(fd, buf, 0, MSG_NOSIGNAL));
    TRY_AND_COUNT(send(fd, buf, 0, MSG_DONTWAIT));
    TRY_AND_COUNT(sendto(fd, buf, 0, 0, NULL, 0));
    TRY_AND_COUNT(write(fd, buf, 0));
    TRY_AND_COUNT(writev(fd, empty, 0));
    TRY_AND_COUNT(writev(fd, NULL, 0));
    TRY_AND_COUNT(writev(fd, empty, 1));
    TRY_AND_COUNT(writev(fd, empty, 2));
    TRY_AND_COUNT(pwritev2(fd, empty, 2, -1, 0));
    TRY_AND_COUNT(pwritev2(fd, empty, 0, -1, RWF_NOWAIT));
    TRY_AND_COUNT(sendmsg(fd, &(struct msghdr){.msg_iov = NULL}, 0));
    TRY_AND_COUNT(sendmsg(fd, &(struct msghdr){.msg_iov = empty, .msg_iovlen = 2}, 0));
    TRY_AND_COUNT(sendmsg(fd, &(struct msghdr){.msg_iov = empty, .msg_iovlen = 2}, MSG_NOSIGNAL));
    TRY_AND_COUNT(sendmmsg(fd, two, 2, 0));
}

static void subject(int fd) {
    handle(SIGPIPE, note, 0);
    every_call(fd);
    TRY(shutdown(fd, SHUT_WR));
    every_call(fd);
    meet();
    settle_end(fd);
    every_call(fd);
}

static void partner(int fd) {
    recv_to_end(fd);
    meet();
}

SUBJECT_AND_PARTNER(subject, partner)
