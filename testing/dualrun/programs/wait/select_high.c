// select with a set larger than FD_SETSIZE, which the kernel takes: a number above 1024.
#include "dual.h"
#include <sys/select.h>

enum { HIGH = 1500, BITS = 8 * sizeof(long) };

static void subject(int fd) {
    OK(dup2(fd, HIGH));
    OK(close(fd));
    unsigned long *in = calloc(2048 / BITS, sizeof *in);
    struct timeval zero = {0, 0};
    in[HIGH / BITS] |= 1ul << HIGH % BITS;
    TRY(select(HIGH + 1, (fd_set *)in, NULL, NULL, &zero));
    meet();
    in[HIGH / BITS] |= 1ul << HIGH % BITS;
    TRY(select(HIGH + 1, (fd_set *)in, NULL, NULL, NULL));
    say("set: %d", (in[HIGH / BITS] >> HIGH % BITS & 1) != 0);
    hear(HIGH, 4);
    free(in);
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
