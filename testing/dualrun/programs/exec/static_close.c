// As static_end, and the other end closes.
#include "filling.h"

static void again(const char *what, int fd) { recv_after(what, fd); }

static void partner(int fd) {
    tell_number(fill_up(fd));
    OK(close(fd));
}

SUBJECT_AND_PARTNER_AND_AGAIN(read_on_as_static, partner)
