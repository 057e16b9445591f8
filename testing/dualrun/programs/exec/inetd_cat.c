// A connection at standard input and output of a program of the system: cat.
#include "talk.h"

static void again(const char *what, int fd) { say("%s %d", what, fd); }

static void subject(int fd) {
    pid_t child = OK(fork());
    if (child == 0) {
        OK(dup2(fd, 0));
        OK(dup2(fd, 1));
        OK(close(fd));
        OK(execlp("cat", "cat", (char *)NULL));
    }
    OK(close(fd));
    say_child("cat", child);
}

static void partner(int fd) {
    for (int i = 0; i < 20; i++) {
        send_text(fd, "through cat");
        if (recv_all(fd, buf, 11) != 11 || memcmp(buf, "through cat", 11) != 0) die(__LINE__, "cat");
    }
    send_filled(fd, 100000);
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
