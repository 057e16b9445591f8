// A set goes to another process that runs as this one does; both wait on it.
#include "passing_sets.h"

static void again(const char *what, int over) { wait_on_taken(what, over); }

static void subject(int fd) { pass_set(fd, 1); }

static void partner(int fd) { partner_of_sets(fd); }

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
