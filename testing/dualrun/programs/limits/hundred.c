// A hundred connections in one process, each used, in one poll.
#include "dual.h"

enum { COUNT = 100 };

static void subject(void) {
    struct pollfd set[COUNT];
    for (int i = 0; i < COUNT; i++) set[i] = (struct pollfd){.fd = connected(), .events = POLLIN};
    meet();
    int heard = 0, rounds = 0;
    while (heard < COUNT && rounds++ < 100000) {
        OK(poll(set, COUNT, -1));
        for (int i = 0; i < COUNT; i++) {
            if (set[i].revents == 0) continue;
            if (recv_all(set[i].fd, buf, 4) == 4) heard++;
            set[i].fd = -1;
        }
    }
    say("%d", heard);
}

static void partner(void) {
    int fds[COUNT];
    for (int i = 0; i < COUNT; i++) fds[i] = connected();
    meet();
    for (int i = COUNT - 1; i >= 0; i--) send_text(fds[i], "data");
    recv_to_end(fds[0]);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
