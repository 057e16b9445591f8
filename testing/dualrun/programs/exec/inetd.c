// As inetd does: the connection becomes standard input and output of another program.
#include "talk.h"

static void again(const char *what, int fd) {
    (void)fd;
    talk(what, 0, 1);
    hear(0, 4);
}

static void subject(int fd) {
    pid_t child = OK(fork());
    if (child == 0) {
        OK(dup2(fd, 0));
        OK(dup2(fd, 1));
        OK(dup2(fd, 2));
        OK(close(fd));
        OK(execv(self(), words_again(self(), "the service", 0)));
    }
    OK(close(fd));
    say_child("child", child);
}

static void partner(int fd) {
    listen_to_talk(fd);
    send_text(fd, "last");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
