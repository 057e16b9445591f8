// MSG_PEEK leaves what it shows, also when it asks for less and more than there is.
#include "dual.h"

static void subject(int fd) {
    settle(fd, 10);
    TRY(recv(fd, buf, 4, MSG_PEEK));
    TRY(recv(fd, buf, 100, MSG_PEEK));
    say("%.10s", buf);
    TRY(recv(fd, buf, 3, 0));
    TRY(recv(fd, buf, 100, MSG_PEEK | MSG_DONTWAIT));
    say("%.7s", buf);
    TRY(recv(fd, buf, 0, MSG_PEEK));
    TRY(recv(fd, buf, 100, 0));
    TRY(recv(fd, buf, 1, MSG_PEEK | MSG_DONTWAIT));
    meet();
    TRY(recv(fd, buf, 100, MSG_PEEK)); // waits
    TRY(recv(fd, buf, 100, 0));
    settle_end(fd);
    TRY(recv(fd, buf, 100, MSG_PEEK));
    TRY(recv(fd, buf, 100, 0));
}

static void partner(int fd) {
    send_text(fd, "0123456789");
    meet();
    send_text(fd, "more");
    shutdown(fd, SHUT_WR);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
