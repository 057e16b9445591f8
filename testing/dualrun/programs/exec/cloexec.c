// A connection that is closed on exec: the peer sees the end. A failed exec changes nothing.
#include "talk.h"

static void again(const char *what, int fd) {
    TRY(fcntl(fd, F_GETFD));
    say("%s", what);
}

static void subject(int fd) {
    OK(fcntl(fd, F_SETFD, FD_CLOEXEC));
    TRY(execv("/nowhere", words_again(self(), "", fd)));
    TRY(execl("/dev/null", "null", (char *)NULL));
    talk("before", fd, fd);
    OK(execv(self(), words_again(self(), "after", fd)));
}

static void partner(int fd) {
    listen_to_talk(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
