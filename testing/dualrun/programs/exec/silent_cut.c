// As silent_killed, with more than TCP has room for: the other end is killed when some of it has moved there.
#include "filling.h"

static void again(const char *what, int fd) {
    tell();
    int64_t total = await_number(), at = 0;
    await();
    ssize_t got;
    for (; (got = recv(fd, buf, sizeof buf, 0)) > 0; at += got)
        if (!as_filled(buf, got, at)) die(__LINE__, "other bytes than were sent");
    if (got < 0) say("%s: %s", what, strerrorname_np(errno));
    else say("%s: %s", what, at == total ? "all, and the end" : "not all");
}

static void partner(int fd) {
    pid_t child = OK(fork());
    if (child == 0) {
        tell_number(fill_up(fd));
        recv(fd, buf, 1, MSG_DONTWAIT);
        raise(SIGKILL);
    }
    OK(close(fd));
    say_child("child", child);
    tell();
}

SUBJECT_AND_PARTNER_AND_AGAIN(read_on_as_static, partner)
