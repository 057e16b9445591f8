// Turns of every size from 1 byte to beyond a ring, each verified.
#include "dual.h"

static void subject(int fd) {
    int right = 0;
    for (int size = 1; size <= 1 << 20; size *= 2) {
        for (int odd = -1; odd <= 1; odd++) {
            int length = size + odd;
            if (length < 1 || length > 1 << 20) continue;
            fill(buf, length, length);
            send_all(fd, buf, length);
            memset(buf, 0, length);
            right += recv_all(fd, buf, length) == length && as_filled(buf, length, length);
        }
    }
    say("%d right", right);
}

static void partner(int fd) {
    int right = 0;
    for (int size = 1; size <= 1 << 20; size *= 2) {
        for (int odd = -1; odd <= 1; odd++) {
            int length = size + odd;
            if (length < 1 || length > 1 << 20) continue;
            right += recv_all(fd, buf, length) == length && as_filled(buf, length, length);
            send_all(fd, buf, length);
        }
    }
    say("%d right", right);
}

SUBJECT_AND_PARTNER(subject, partner)
