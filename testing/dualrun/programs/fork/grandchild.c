// The grandchild has the connection when parent and child have gone.
#include "dual.h"

static void subject(int fd) {
    int gone[2];
    OK(pipe(gone));
    send_text(fd, "one ");
    pid_t child = OK(fork());
    if (child == 0) {
        send_text(fd, "two ");
        if (OK(fork()) > 0) _exit(0);
        OK(close(gone[1]));
        OK(read(gone[0], buf, 1)); // comes to its end when the others are gone
        send_text(fd, "three");
        hear(fd, 3);
        send_filled(fd, 100000);
        _exit(0);
    }
    say_child("child", child);
    exit(0);
}

static void partner(int fd) {
    hear(fd, 13);
    send_text(fd, "yes");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
