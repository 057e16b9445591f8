// A filter answers ioctl with an error, as it may in a container: the connection works all the same.
#include "dual.h"
#include "refused.h"
#include <sys/ioctl.h>

static void subject(void) {
    int fd = connected_by(AF_INET), count;
    refuse(SYS_ioctl, EPERM);
    warm_up(fd);
    TRY(ioctl(fd, FIONREAD, &count));
    send_filled(fd, 500000);
    recv_filled(fd, 500000);
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
