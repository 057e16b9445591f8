// The parent closes its copy at once, as servers do; the child serves; the peer sees the end when the child has closed.
#include "dual.h"

static void subject(int fd) {
    pid_t child = OK(fork());
    if (child == 0) {
        for (int i = 0; i < 100; i++) {
            ssize_t got = recv_all(fd, buf, 100);
            send_all(fd, buf, got);
        }
        OK(close(fd));
        _exit(3);
    }
    OK(close(fd));
    TRY(send(fd, "x", 1, 0));
    say_child("child", child);
}

static void partner(int fd) {
    int right = 0;
    for (int i = 0; i < 100; i++) {
        char out[100], in[100];
        fill(out, 100, i);
        send_all(fd, out, 100);
        right += recv_all(fd, in, 100) == 100 && memcmp(in, out, 100) == 0;
    }
    say("%d right", right);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
