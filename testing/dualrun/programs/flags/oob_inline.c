// SO_OOBINLINE leaves the urgent byte where it was sent; reading stops at the mark.
#include "dual.h"

static void subject(int fd) {
    int on = 1, mark;
    OK(setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on));
    meet();
    say_poll("urgent", fd, POLLPRI, -1);
    settle(fd, 12);
    TRY(recv(fd, buf, 100, 0));
    TRY(ioctl(fd, SIOCATMARK, &mark));
    say("at the mark: %d", mark);
    TRY(recv(fd, buf, 100, MSG_OOB));
    hear(fd, 6);
    TRY(ioctl(fd, SIOCATMARK, &mark));
    say("at the mark: %d", mark);
    tell();
}

static void partner(int fd) {
    meet();
    send_text(fd, "before");
    TRY(send(fd, "!", 1, MSG_OOB));
    send_text(fd, "after");
    await();
}

SUBJECT_AND_PARTNER(subject, partner)
