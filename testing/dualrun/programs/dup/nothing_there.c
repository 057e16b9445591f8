// Numbers at which the program has nothing can be duplicated by no call, nor be put where they are.
#include "dual.h"

static void subject(int fd) {
    int by_dup = 0, by_dup2 = 0, by_fcntl = 0;
    for (int number = 0; number < 1024; number++) {
        if (number == fd || fcntl(number, F_GETFD) >= 0) continue;
        int copy = dup(number);
        by_dup += copy >= 0 || errno != EBADF;
        if (copy >= 0) close(copy);
        by_dup2 += dup2(number, number) >= 0 || errno != EBADF;
        copy = fcntl(number, F_DUPFD, 0);
        by_fcntl += copy >= 0 || errno != EBADF;
        if (copy >= 0) close(copy);
    }
    say("not refused: dup %d, dup2 %d, fcntl %d", by_dup, by_dup2, by_fcntl);
    send_text(fd, "done");
}

static void partner(int fd) { hear(fd, 4); }

SUBJECT_AND_PARTNER(subject, partner)
