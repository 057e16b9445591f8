// A child closes its copy of a connection that is in a set which both have: the parent is told of it as before.
#include "closing_child.h"

static void subject(int fd) {
    tell();
    beside_closing_child(fd, EPOLLIN, 0);
    say_the_end(fd);
}

static void partner(int fd) { send_in_pairs(fd, 1); }

SUBJECT_AND_PARTNER(subject, partner)
