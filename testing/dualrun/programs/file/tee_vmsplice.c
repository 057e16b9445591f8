// Memory into a pipe, a copy of the pipe kept, and the pipe into the socket; neither call takes a socket itself.
#include "dual.h"

static void subject(int fd) {
    int one[2], two[2];
    OK(pipe(one));
    OK(pipe(two));
    struct iovec memory = {"through two pipes", 17};
    TRY(vmsplice(one[1], &memory, 1, 0));
    TRY(tee(one[0], two[1], 100, 0));
    TRY(splice(one[0], NULL, fd, NULL, 17, 0));
    TRY(splice(two[0], NULL, fd, NULL, 17, 0));
    TRY(vmsplice(fd, &memory, 1, 0));
    TRY(tee(fd, two[1], 100, SPLICE_F_NONBLOCK));
    hear(fd, 2);
}

static void partner(int fd) {
    hear(fd, 34);
    send_text(fd, "ok");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
