// A program that has used all its numbers becomes another, which has a connection of before.
#include "talk.h"
#include <sys/resource.h>

static void again(const char *what, int fd) { talk(what, fd, fd); }

static void subject(int fd) {
    talk("before", fd, fd);
    struct rlimit limit;
    OK(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 40;
    OK(setrlimit(RLIMIT_NOFILE, &limit));
    int last = 0, next;
    while ((next = dup(0)) >= 0) last = next;
    say("%d", errno == EMFILE);
    talk("at the limit", fd, fd);
    while (last > fd) close(last--);
    OK(execv(self(), words_again(self(), "after", fd)));
}

static void partner(int fd) {
    for (int i = 0; i < 3; i++) listen_to_talk(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
