// Urgent data that a child of fork sends, to a peer that has a child, too; then another byte before the first has been taken.
#include "dual.h"

static void subject(int fd) {
    pid_t child = OK(fork());
    if (child == 0) {
        send_text(fd, "before");
        TRY(send(fd, "!", 1, MSG_OOB));
        send_text(fd, "after");
        await();
        TRY(send(fd, "12?", 3, MSG_OOB));
        send_text(fd, "end");
        _exit(0);
    }
    say_child("child", child);
}

static void partner(int fd) {
    int mark;
    pid_t child = OK(fork());
    if (child == 0) {
        OK(close(fd));
        _exit(0);
    }
    say_child("child", child);
    say_poll("urgent", fd, POLLPRI, -1);
    settle(fd, 6);
    TRY(recv(fd, buf, 100, 0));
    TRY(ioctl(fd, SIOCATMARK, &mark));
    say("at the mark: %d", mark);
    TRY(recv(fd, buf, 100, MSG_OOB));
    say("%c", buf[0]);
    hear(fd, 5);
    tell();
    say_poll("urgent", fd, POLLPRI, -1);
    hear(fd, 2);
    TRY(recv(fd, buf, 100, MSG_OOB));
    say("%c", buf[0]);
    hear(fd, 3);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
