// Requests that a socket does not know, and where the answer should go.
#include "dual.h"
#include <linux/sockios.h>

static void subject(int fd) {
    int value;
    TRY(ioctl(fd, TIOCGWINSZ, buf));
    TRY(ioctl(fd, FIONREAD, (void *)16));
    TRY(ioctl(fd, FIONBIO, (void *)16));
    TRY(ioctl(fd, FIOCLEX));
    TRY(fcntl(fd, F_GETFD));
    TRY(ioctl(fd, FIONCLEX));
    TRY(fcntl(fd, F_GETFD));
    TRY(ioctl(fd, FIOASYNC, &(int){0}));
    TRY(ioctl(fd, SIOCATMARK, &value));
    say("%d", value);
    send_text(fd, "end");
    meet();
}

static void partner(int fd) {
    hear(fd, 3);
    meet();
}

SUBJECT_AND_PARTNER(subject, partner)
