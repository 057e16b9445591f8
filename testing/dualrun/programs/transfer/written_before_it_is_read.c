// One end writes what a ring does not hold, and TCP does; the other does nothing before that is done.
#include "much.h"

static void subject(int fd) { write_unread(fd, NULL); }

SUBJECT_AND_PARTNER(subject, read_once_written)
