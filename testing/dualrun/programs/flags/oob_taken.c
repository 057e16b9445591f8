// An urgent byte that was taken out of band is unread until a receive has passed the mark: a close before that resets the connection.
#include "dual.h"

static void subject(int fd) {
    send_text(fd, "to be read");
    say_poll("urgent", fd, POLLPRI, -1);
    settle(fd, 6);
    hear(fd, 6);
    TRY(recv(fd, buf, 1, MSG_OOB));
    await();
    TRY(close(fd));
    tell();
}

static void partner(int fd) {
    signal(SIGPIPE, SIG_IGN);
    send_text(fd, "before");
    TRY(send(fd, "!", 1, MSG_OOB));
    hear(fd, 10);
    tell();
    await();
    TRY(recv(fd, buf, 1, 0));
    say_poll("reset", fd, POLLIN | POLLOUT | POLLRDHUP, -1);
    TRY(recv(fd, buf, 1, 0));
    TRY(send(fd, "x", 1, 0));
}

SUBJECT_AND_PARTNER(subject, partner)
