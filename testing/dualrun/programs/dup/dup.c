// A duplicate is the same connection: each reads and writes it, and closing one leaves the other.
#include "dual.h"

static void subject(int fd) {
    int twin = OK(dup(fd));
    TRY(send(fd, "a", 1, 0));
    TRY(send(twin, "b", 1, 0));
    settle(twin, 4);
    TRY(recv(fd, buf, 2, 0));
    TRY(recv(twin, buf + 2, 2, 0));
    say("%.4s", buf);
    TRY(close(fd));
    TRY(recv(fd, buf, 1, 0));
    TRY(send(twin, "c", 1, 0));
    hear(twin, 4);
    int third = OK(dup(twin));
    TRY(close(twin));
    TRY(send(third, "d", 1, 0));
    TRY(close(third));
}

static void partner(int fd) {
    send_text(fd, "data");
    hear(fd, 3);
    send_text(fd, "more");
    hear(fd, 2);
}

SUBJECT_AND_PARTNER(subject, partner)
