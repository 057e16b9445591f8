// A handler leaves a send or recv that works, not one that waits, by all calls that jump; another thread goes on in the same direction.
#include "jumps.h"

SUBJECT_AND_PARTNER(jump_out_of_calls, partner_of_jumps)
