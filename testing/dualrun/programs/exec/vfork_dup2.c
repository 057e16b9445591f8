// A child of vfork that makes the connection its standard input and output: in the parent these stay what they are.
#include "talk.h"

static void again(const char *what, int fd) { say("%s %d", what, fd); }

static void subject(int fd) {
    pid_t child = vfork();
    if (child == 0) {
        dup2(fd, STDIN_FILENO);
        dup2(fd, STDOUT_FILENO);
        int third = dup(fd);
        close(third);
        int fourth = fcntl(fd, F_DUPFD, fd);
        _exit(fourth > fd && third > fd ? 3 : 4);
    }
    say_child("child", child);
    TRY(write(STDOUT_FILENO, "lost", 4));
    TRY(read(STDIN_FILENO, buf, 4));
    talk("the parent", fd, fd);
    TRY(close(fd));
}

static void partner(int fd) {
    listen_to_talk(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
