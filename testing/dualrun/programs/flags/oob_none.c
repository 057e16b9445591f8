// MSG_OOB where there is no urgent byte; MSG_OOB with several bytes makes the last one urgent.
#include "dual.h"

static void subject(int fd) {
    TRY(recv(fd, buf, 1, MSG_OOB));
    meet();
    say_poll("urgent", fd, POLLPRI, -1);
    settle(fd, 4);
    TRY(recv(fd, buf, 1, MSG_OOB | MSG_PEEK));
    TRY(recv(fd, buf, 1, MSG_OOB));
    say("%c", buf[0]);
    TRY(recv(fd, buf, 1, MSG_OOB));
    hear(fd, 4);
    TRY(recv(fd, buf, 1, MSG_DONTWAIT));
    tell();
}

static void partner(int fd) {
    meet();
    TRY(send(fd, "five!", 5, MSG_OOB));
    await();
}

SUBJECT_AND_PARTNER(subject, partner)
