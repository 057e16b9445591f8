// closefrom closes every connection from a number on.
#include "dual.h"

static void subject(int fd) {
    OK(dup2(fd, 1000));
    OK(dup2(fd, 1005));
    closefrom(1003);
    TRY(fcntl(1005, F_GETFD));
    OK(close(fd));
    send_text(1000, "one left");
    closefrom(950);
    TRY(fcntl(1000, F_GETFD));
    await();
}

static void partner(int fd) {
    hear(fd, 9);
    tell();
}

SUBJECT_AND_PARTNER(subject, partner)
