// The connection goes to another process that runs as this one does, with data unread; this one closes it.
#include "passing.h"
#include "talk.h"

static void again(const char *what, int over) {
    int fd = take(over);
    recv_filled(fd, 50000);
    talk(what, fd, fd);
    hear(fd, 4);
}

static void subject(int fd) {
    int over[2];
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, over));
    OK(fcntl(fd, F_SETFD, FD_CLOEXEC));
    settle(fd, 20000);
    pid_t child = OK(fork());
    if (child == 0) OK(execv(self(), words_again(self(), "the other process", over[1])));
    pass(over[0], fd);
    OK(close(fd));
    say_child("child", child);
}

static void partner(int fd) {
    send_filled(fd, 50000);
    listen_to_talk(fd);
    send_text(fd, "last");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
