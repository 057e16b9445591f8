// dup2 and dup3 onto a connection whose number the limit, lowered since, allows no more: they fail, and it goes on.
#include "dual.h"
#include <sys/resource.h>

static void subject(int fd) {
    OK(dup2(fd, 700));
    OK(close(fd));
    struct rlimit limit;
    OK(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 700;
    OK(setrlimit(RLIMIT_NOFILE, &limit));
    TRY(dup2(STDERR_FILENO, 700));
    TRY(dup3(STDERR_FILENO, 700, O_CLOEXEC));
    send_text(700, "still there");
    hear(700, 5);
    limit.rlim_cur = 701;
    OK(setrlimit(RLIMIT_NOFILE, &limit));
    TRY(dup2(STDERR_FILENO, 700));
}

static void partner(int fd) {
    hear(fd, 11);
    send_text(fd, "as is");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
