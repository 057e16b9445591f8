// Standard numbers that a connection gets by `dup` and `fcntl`, after a `close`.
#include "dual.h"

static void subject(int fd) {
    char word[20];
    OK(close(1));
    TRY(fcntl(fd, F_DUPFD, 1));
    puts("by F_DUPFD");
    TRY(fflush(stdout));
    OK(close(1));
    TRY(fcntl(fd, F_DUPFD_CLOEXEC, 1));
    puts("and close-on-exec");
    TRY(fflush(stdout));
    OK(close(1));
    TRY(dup(fd));
    puts("by dup");
    TRY(fflush(stdout));
    OK(close(2));
    OK(fcntl(fd, F_DUPFD, 2));
    fputs("an error\n", stderr);
    OK(close(0));
    TRY(fcntl(fd, F_DUPFD, 0));
    TRY(scanf("%19s", word));
    say("%s", word);
}

static void partner(int fd) {
    hear(fd, 11);
    hear(fd, 18);
    hear(fd, 7);
    hear(fd, 9);
    send_text(fd, "answer\n");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
