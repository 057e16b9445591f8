// MSG_MORE may hold bytes back, but only until the next send without it, or shutdown.
#include "dual.h"

static void subject(int fd) {
    TRY(send(fd, "abc", 3, MSG_MORE));
    TRY(send(fd, "def", 3, MSG_MORE));
    TRY(send(fd, "ghi", 3, 0));
    hear(fd, 2);
    TRY(send(fd, "last", 4, MSG_MORE));
    TRY(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

static void partner(int fd) {
    hear(fd, 9);
    send_text(fd, "ok");
    hear(fd, 5);
}

SUBJECT_AND_PARTNER(subject, partner)
