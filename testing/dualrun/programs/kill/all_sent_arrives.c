// What a send had taken before the sender was killed arrives, all of it.
#include "dual.h"

static void subject(int fd) {
    int done[2];
    OK(pipe(done));
    pid_t child = OK(fork());
    if (child == 0) {
        send_filled(fd, 150000);
        OK(write(done[1], "", 1));
        for (;;) pause();
    }
    OK(close(fd));
    OK(read(done[0], buf, 1));
    OK(kill(child, SIGKILL));
    say_child("sender", child);
    tell();
}

static void partner(int fd) {
    uint64_t at = 0;
    ssize_t got;
    recv_filled(fd, 1000);
    await();
    at = 1000;
    while ((got = recv(fd, buf, 65536, 0)) > 0) {
        if (!as_filled(buf, got, at)) die(__LINE__, "not as sent");
        at += got;
    }
    say("%lu bytes, then %s", (unsigned long)at, got == 0 ? "end" : strerrorname_np(errno));
}

SUBJECT_AND_PARTNER(subject, partner)
