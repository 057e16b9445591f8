// A child is killed while it uses the connection; the parent can still use it.
#include "dual.h"

static void subject(int fd) {
    int ready[2];
    OK(pipe(ready));
    pid_t child = OK(fork());
    if (child == 0) {
        OK(write(ready[1], "", 1));
        for (;;) { // nothing comes
            if (recv(fd, buf, 1, 0) <= 0) _exit(1);
        }
    }
    OK(read(ready[0], buf, 1));
    wait_asleep(child);
    OK(kill(child, SIGKILL));
    say_child("child", child);
    send_text(fd, "ping");
    hear(fd, 4);
}

static void partner(int fd) {
    hear(fd, 4);
    send_text(fd, "pong");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
