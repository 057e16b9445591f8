// close_range with CLOSE_RANGE_UNSHARE closes as without: what comes to the number is not the connection.
#include "dual.h"
#include <linux/close_range.h>

static void subject(int fd) {
    settle(fd, 4);
    TRY(close_range(fd, fd, 1 << 16));
    TRY(recv(fd, buf, 4, MSG_PEEK));
    TRY(close_range(fd, fd, CLOSE_RANGE_UNSHARE));
    say("the same number: %d", open("/dev/null", O_RDONLY | O_CLOEXEC) == fd);
    TRY(read(fd, buf, 4));
    tell();
}

static void partner(int fd) {
    send_text(fd, "four");
    await();
    say_poll("closed with a byte unread", fd, POLLIN, -1);
}

SUBJECT_AND_PARTNER(subject, partner)
