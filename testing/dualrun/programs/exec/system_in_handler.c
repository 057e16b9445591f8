// A handler starts shells that inherit the connection on which the program is sending, and some write to it: it is both's, and stays the program's.
#include "from_handlers.h"

static void subject(int fd) {
    send_beside_others(fd, by_system);
}

SUBJECT_AND_PARTNER(subject, partner)
