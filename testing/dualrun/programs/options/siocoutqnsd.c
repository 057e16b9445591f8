// How much has not been sent: none while the peer has room for what it has not read, some when it has none.
#include "dual.h"
#include <linux/sockios.h>

static void subject(int fd) {
    int left = -1;
    send_text(fd, "unread");
    do OK(ioctl(fd, SIOCOUTQNSD, &left));
    while (left > 0);
    say("%d", left);
    OK(fcntl(fd, F_SETFL, O_NONBLOCK));
    fill(buf, sizeof buf, 0);
    while (send(fd, buf, 65536, 0) > 0) {}
    OK(ioctl(fd, SIOCOUTQNSD, &left));
    say("some left: %d", left > 0);
    tell();
}

static void partner(int fd) {
    (void)fd;
    await();
}

SUBJECT_AND_PARTNER(subject, partner)
