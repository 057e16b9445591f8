// A handler forks in the middle of the program's sends, and the children write to the connection.
#include "from_handlers.h"

static int begin_other(int writes) {
    pid_t child = fork();
    if (child == 0) _exit(!writes ? 3 : send(connection, "H", 1, MSG_NOSIGNAL) != 1);
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return status == (writes ? 0 : 3 << 8);
}

SUBJECT_AND_PARTNER(subject, partner)
