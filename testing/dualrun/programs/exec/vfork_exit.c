// A child of vfork that closes the connection and exits without exec: it shares memory with the parent, not files.
#include "talk.h"

static void again(const char *what, int fd) { say("%s %d", what, fd); }

static void subject(int fd) {
    pid_t child = vfork();
    if (child == 0) {
        close(fd);
        _exit(3);
    }
    say_child("child", child);
    talk("the parent", fd, fd);
}

static void partner(int fd) {
    listen_to_talk(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
