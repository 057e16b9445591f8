// Flags that a stream answers with an error or ignores.
#include "dual.h"

static void subject(int fd) {
    settle(fd, 4);
    TRY(recv(fd, buf, 10, MSG_ERRQUEUE | MSG_DONTWAIT));
    TRY(send(fd, "a", 1, MSG_CONFIRM));
    TRY(send(fd, "b", 1, MSG_DONTROUTE));
    TRY(send(fd, "c", 1, MSG_EOR));
    TRY(recv(fd, buf, 10, MSG_CMSG_CLOEXEC));
    TRY(send(fd, "d", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
}

static void partner(int fd) {
    send_text(fd, "data");
    hear(fd, 4);
}

SUBJECT_AND_PARTNER(subject, partner)
