// vfork and exec, with the connection inherited, and with another that is closed on exec.
#include "talk.h"

static void again(const char *what, int fd) {
    TRY(fcntl(fd + 1, F_GETFD));
    talk(what, fd, fd);
}

static void subject(int fd) {
    int kept_out = OK(fcntl(fd, F_DUPFD_CLOEXEC, fd + 1));
    say("next: %d", kept_out == fd + 1);
    char **words = words_again(self(), "the child of vfork", fd);
    pid_t child = vfork();
    if (child == 0) {
        execv(words[0], words);
        _exit(99);
    }
    say_child("child", child);
    talk("the parent", kept_out, fd);
}

static void partner(int fd) {
    listen_to_talk(fd);
    listen_to_talk(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
