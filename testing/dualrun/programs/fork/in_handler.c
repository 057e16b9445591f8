// A handler forks in the middle of the program's sends, and the children write to the connection.
#include "from_handlers.h"

static void subject(int fd) {
    send_beside_others(fd, by_fork);
}

SUBJECT_AND_PARTNER(subject, partner)
