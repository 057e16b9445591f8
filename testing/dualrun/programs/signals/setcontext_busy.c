// A handler leaves a send or recv that works by setcontext; the thread's next call finds out, and then another thread goes on.
#include "jumps.h"

static void subject(int fd) {
    by_context = 1;
    jump_out_of_calls(fd);
}

SUBJECT_AND_PARTNER(subject, partner_of_jumps)
