// O_NONBLOCK belongs to the open file, so a duplicate sees it; FIONBIO sets the same.
#include "dual.h"

static void subject(int fd) {
    int twin = OK(dup(fd)), on = 1, off = 0;
    OK(fcntl(fd, F_SETFL, O_NONBLOCK));
    TRY((fcntl(twin, F_GETFL) & O_NONBLOCK) != 0);
    TRY(recv(twin, buf, 1, 0));
    OK(ioctl(twin, FIONBIO, &off));
    TRY((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    meet();
    hear(fd, 4); // waits
    OK(ioctl(fd, FIONBIO, &on));
    TRY(read(twin, buf, 1));
    TRY(recv(twin, buf, 1, MSG_WAITALL));
    TRY((fcntl(twin, F_GETFL) & O_ACCMODE) == O_RDWR);
    OK(fcntl(twin, F_SETFL, fcntl(twin, F_GETFL) & ~O_NONBLOCK));
    meet();
    hear(fd, 4);
}

static void partner(int fd) {
    meet();
    send_text(fd, "wait");
    meet();
    send_text(fd, "more");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
