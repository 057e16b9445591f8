// Nothing to send and nothing to read: zero bytes are neither data nor the end.
#include "dual.h"

static void subject(int fd) {
    TRY(send(fd, buf, 0, 0));
    TRY(write(fd, buf, 0));
    TRY(send(fd, NULL, 0, 0));
    TRY(read(fd, buf, 0));
    TRY(recv(fd, buf, 0, MSG_DONTWAIT));
    meet();
    settle(fd, 1);
    TRY(recv(fd, buf, 0, 0));
    TRY(read(fd, buf, 0));
    TRY(recv(fd, buf, 10, 0));
}

static void partner(int fd) {
    TRY(recv(fd, buf, 10, MSG_DONTWAIT));
    meet();
    send_text(fd, "x");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
