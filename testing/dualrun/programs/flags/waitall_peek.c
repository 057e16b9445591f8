// MSG_WAITALL with MSG_PEEK waits for all and takes nothing; MSG_DONTWAIT wins over MSG_WAITALL.
#include "dual.h"

static void subject(int fd) {
    TRY(recv(fd, buf, 10, MSG_WAITALL | MSG_DONTWAIT));
    meet();
    TRY(recv(fd, buf, 10, MSG_WAITALL | MSG_PEEK));
    TRY(recv(fd, buf, 20, MSG_WAITALL | MSG_DONTWAIT));
    say("%.10s", buf);
    tell();
    settle_end(fd);
    TRY(recv(fd, buf, 10, MSG_WAITALL | MSG_PEEK));
}

static void partner(int fd) {
    meet();
    send_text(fd, "01234");
    send_text(fd, "56789");
    await();
    shutdown(fd, SHUT_WR);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
