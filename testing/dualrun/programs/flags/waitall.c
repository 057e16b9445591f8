// MSG_WAITALL waits for all that was asked for, and returns less at the end of the stream.
#include "dual.h"

static void subject(int fd) {
    meet();
    TRY(recv(fd, buf, 3000, MSG_WAITALL));
    say("%lx", digest(buf, 3000));
    TRY(recv(fd, buf, 200000, MSG_WAITALL));
    say("%lx", digest(buf, 200000));
    TRY(recv(fd, buf, 100, MSG_WAITALL)); // 7 come, then the end
    TRY(recv(fd, buf, 100, MSG_WAITALL));
}

static void partner(int fd) {
    fill(buf, sizeof buf, 0);
    meet();
    for (int i = 0; i < 3; i++) send_all(fd, buf + i * 1000, 1000);
    send_all(fd, buf, 200000);
    send_text(fd, "7 bytes");
    shutdown(fd, SHUT_WR);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
