// exec into a program without a dynamic linker, while there is more than TCP has room for; then the other end shuts down, and all comes before that.
#include "filling.h"

static void again(const char *what, int fd) { recv_after(what, fd); }

static void partner(int fd) {
    tell_number(fill_up(fd));
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(read_on_as_static, partner)
