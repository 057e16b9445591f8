// How much the peer has not acknowledged: none while it has room for what it has not read, some when it has none, none when all is done.
#include "dual.h"
#include <linux/sockios.h>

static void subject(int fd) {
    int left = -1;
    TRY(ioctl(fd, SIOCOUTQ, &left));
    send_text(fd, "unread");
    do OK(ioctl(fd, SIOCOUTQ, &left));
    while (left > 0);
    say("%d", left);
    tell();
    OK(fcntl(fd, F_SETFL, O_NONBLOCK));
    fill(buf, sizeof buf, 0);
    ssize_t sent, total = 0;
    while ((sent = send(fd, buf, 65536, 0)) > 0) total += sent;
    OK(ioctl(fd, SIOCOUTQ, &left));
    say("some left: %d, no more than was ever sent: %d", left > 0, left <= total + WARM_BYTES + 2048);
    tell_number(total);
    OK(fcntl(fd, F_SETFL, 0));
    hear(fd, 3);
    do OK(ioctl(fd, SIOCOUTQ, &left));
    while (left > 0);
    say("%d", left);
}

static void partner(int fd) {
    await();
    hear(fd, 6);
    for (ssize_t left = await_number(); left > 0;) {
        ssize_t got = recv(fd, buf, left < 65536 ? left : 65536, 0);
        if (got <= 0) die(__LINE__, "recv");
        left -= got;
    }
    send_text(fd, "all");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
