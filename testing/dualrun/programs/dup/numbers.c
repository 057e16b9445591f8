// The numbers that come back, the flags that they have, and the errors.
#include "dual.h"

static void subject(int fd) {
    int base = OK(dup(fd)); // the lowest that is free
    say("lowest %d", base - fd);
    say("F_DUPFD %ld", OK(fcntl(fd, F_DUPFD, 100)));
    say("F_DUPFD %ld", OK(fcntl(fd, F_DUPFD, 100)));
    say("F_DUPFD_CLOEXEC %ld", OK(fcntl(fd, F_DUPFD_CLOEXEC, 100)));
    TRY(dup2(fd, 200));
    TRY(dup2(fd, fd) == fd);
    TRY(dup3(fd, 201, O_CLOEXEC));
    TRY(dup3(fd, 201, 0));
    TRY(dup3(fd, fd, 0));
    TRY(dup3(fd, 202, O_NONBLOCK));
    TRY(dup2(fd, -1));
    TRY(dup2(fd, 1 << 30));
    TRY(fcntl(fd, F_DUPFD, -1));
    for (int i = 100; i < 103; i++) say("FD_CLOEXEC of %d: %ld", i, OK(fcntl(i, F_GETFD)));
    TRY(fcntl(200, F_GETFD));
    TRY(fcntl(201, F_GETFD));
    TRY(fcntl(200, F_SETFD, FD_CLOEXEC));
    TRY(fcntl(200, F_GETFD));
    TRY(fcntl(fd, F_GETFD));
    send_text(201, "through 201");
    OK(close(200));
    send_text(101, "through 101");
    hear(102, 2);
}

static void partner(int fd) {
    hear(fd, 22);
    send_text(fd, "ok");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
