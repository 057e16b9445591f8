// The next program may have so little memory that a library which is preloaded finds no room, nor a connection's memory.
#include "talk.h"
#include <sys/resource.h>

static void again(const char *what, int fd) { talk(what, fd, fd); }

static void subject(int fd) {
    talk("before", fd, fd);
    struct rlimit limit;
    OK(getrlimit(RLIMIT_AS, &limit));
    limit.rlim_cur = 24 << 20;
    OK(setrlimit(RLIMIT_AS, &limit));
    OK(execv(self(), words_again(self(), "after", fd)));
}

static void partner(int fd) {
    for (int i = 0; i < 2; i++) listen_to_talk(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
