// A child looks at a set that it has from its parent, and closes its copy of the connection in it: the parent is told of that as before.
#include "closing_child.h"

static void subject(int fd) {
    tell();
    beside_closing_child(fd, EPOLLIN, 1);
    tell();
    beside_closing_child(fd, EPOLLIN | EPOLLET, 1);
    say_the_end(fd);
}

static void partner(int fd) { send_in_pairs(fd, 2); }

SUBJECT_AND_PARTNER(subject, partner)
