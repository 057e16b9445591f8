// A handler starts shells that inherit the connection on which the program is sending, and some write to it: it is both's, and stays the program's.
#include "from_handlers.h"

static int begin_other(int writes) {
    char script[64];
    snprintf(script, sizeof script, writes ? "printf H >&%d" : "exit 3", connection);
    return system(script) == (writes ? 0 : 3 << 8);
}

SUBJECT_AND_PARTNER(subject, partner)
