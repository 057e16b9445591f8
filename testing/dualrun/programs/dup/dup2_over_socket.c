// dup2 over a connection that has data unread and data under way closes it, as close does.
#include "dual.h"

static void subject(void) {
    int fds[2];
    connected_twice(fds);
    settle(fds[0], 6);
    TRY(dup2(fds[1], fds[0]) == fds[0]); // the first is reset: its data was unread
    send_text(fds[0], "on the second");
    OK(close(fds[1]));
    hear(fds[0], 5);
    int third = connected();
    send_filled(third, 100000);
    TRY(dup2(fds[0], third) == third); // its peer gets all of it
    send_text(third, "again");
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    send_text(fds[0], "unread");
    hear(fds[1], 13);
    settle_end(fds[0]);
    TRY(recv(fds[0], buf, 1, 0));
    send_text(fds[1], "there");
    int third = connected();
    recv_to_end(third);
    hear(fds[1], 5);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
