// The limit is reached before the connection could be upgraded: it works all the same.
#include "dual.h"
#include <sys/resource.h>

static void subject(void) {
    int fd = connected_by(AF_INET);
    struct rlimit limit;
    OK(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = fd + 1;
    OK(setrlimit(RLIMIT_NOFILE, &limit));
    warm_up(fd);
    send_filled(fd, 500000);
    recv_filled(fd, 500000);
    TRY(dup(fd));
    meet();
}

static void partner(void) {
    int fd = connected_by(AF_INET);
    warm_up(fd);
    recv_filled(fd, 500000);
    send_filled(fd, 500000);
    meet();
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
