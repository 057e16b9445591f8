// MSG_TRUNC on a stream throws away what it takes, without touching the buffer.
#include "dual.h"

static void subject(int fd) {
    settle(fd, 10);
    strcpy(buf, "untouched");
    TRY(recv(fd, buf, 4, MSG_TRUNC));
    say("%s", buf);
    TRY(recv(fd, NULL, 2, MSG_TRUNC));
    TRY(recv(fd, buf, 100, 0));
    say("%.4s", buf);
    TRY(recv(fd, NULL, 4, MSG_TRUNC | MSG_DONTWAIT));
    meet();
    TRY(recv(fd, NULL, 300000, MSG_TRUNC | MSG_WAITALL));
    hear(fd, 3);
}

static void partner(int fd) {
    send_text(fd, "0123456789");
    meet();
    send_filled(fd, 300000);
    send_text(fd, "end");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
