// SO_MAX_PACING_RATE, set on a connection that may have left TCP: from then on TCP carries what is sent. Without a limit nothing changes.
#include "carried.h"

static void subject(int fd) {
    TRY(setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &(unsigned){UINT32_MAX}, sizeof(unsigned)));
    send_text(fd, "free");
    hear(fd, 4);
    TRY(setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &(unsigned){500000000}, sizeof(unsigned)));
    say_whether_carried("paced", fd);
    hear(fd, 4);
    recv_to_end(fd);
}

static void partner(int fd) {
    hear(fd, 4);
    send_text(fd, "heed");
    see_carried(fd);
    send_text(fd, "done");
    send_filled(fd, 300000);
}

SUBJECT_AND_PARTNER(subject, partner)
