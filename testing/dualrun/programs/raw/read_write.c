// syscall() instead of the functions, as some libraries do: read, write, readv, writev, sendto, recvfrom, sendmsg, recvmsg.
#include "dual.h"
#include <sys/syscall.h>

static void subject(int fd) {
    TRY(syscall(SYS_write, fd, "one ", 4L));
    TRY(syscall(SYS_sendto, fd, "two ", 4L, 0L, NULL, 0L));
    struct iovec out = {"three", 5};
    struct msghdr message = {.msg_iov = &out, .msg_iovlen = 1};
    TRY(syscall(SYS_sendmsg, fd, &message, 0L));
    TRY(syscall(SYS_writev, fd, &out, 1L));
    settle(fd, 20);
    TRY(syscall(SYS_read, fd, buf, 5L));
    say("%.5s", buf);
    TRY(syscall(SYS_recvfrom, fd, buf, 5L, (long)MSG_PEEK, NULL, NULL));
    say("%.5s", buf);
    TRY(syscall(SYS_recvfrom, fd, buf, 5L, 0L, NULL, NULL));
    struct iovec in = {buf, 5};
    message = (struct msghdr){.msg_iov = &in, .msg_iovlen = 1};
    TRY(syscall(SYS_recvmsg, fd, &message, 0L));
    say("%.5s", buf);
    TRY(syscall(SYS_readv, fd, &in, 1L));
    say("%.5s", buf);
    TRY(syscall(SYS_recvfrom, fd, buf, 5L, (long)MSG_DONTWAIT, NULL, NULL));
    TRY(syscall(SYS_shutdown, fd, (long)SHUT_WR));
    TRY(syscall(SYS_read, -1L, buf, 5L));
    meet();
}

static void partner(int fd) {
    hear(fd, 18);
    send_text(fd, "22222333334444455555");
    TRY(recv(fd, buf, 1, 0));
    meet();
}

SUBJECT_AND_PARTNER(subject, partner)
