// The client of a download: it shuts its side first, and a large answer comes afterwards.
#include "dual.h"

static void subject(int fd) {
    send_text(fd, "GET everything");
    TRY(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
    TRY(close(fd));
}

static void partner(int fd) {
    hear(fd, 15);
    send_filled(fd, 8 << 20);
    TRY(close(fd));
}

SUBJECT_AND_PARTNER(subject, partner)
