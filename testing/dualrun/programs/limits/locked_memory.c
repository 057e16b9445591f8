// A program that locks all that it will map.
#include "dual.h"
#include <sys/mman.h>
#include <sys/resource.h>

static void both(void) {
    TRY(mlockall(MCL_CURRENT | MCL_FUTURE));
    int fd = connected();
    if (is_client) { send_filled(fd, 3000000); recv_to_end(fd); }
    else { recv_filled(fd, 3000000); send_filled(fd, 3000000); }
}

SERVER_AND_CLIENT(both, both)
