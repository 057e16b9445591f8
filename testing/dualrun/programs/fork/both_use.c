// After fork parent and child use the connection in turns, each continuing where the other stopped.
#include "dual.h"

static void subject(int fd) {
    int to_child[2], to_parent[2];
    OK(pipe(to_child));
    OK(pipe(to_parent));
    pid_t child = OK(fork());
    for (int i = 0; i < 40; i++) {
        if (i % 2 == (child == 0)) {
            char text[16];
            snprintf(text, sizeof text, "request %02d", i);
            send_text(fd, text);
            ssize_t got = recv_all(fd, text, 9);
            text[9] = 0;
            if (got != 9 || atoi(text + 7) != i) die(__LINE__, "answer");
            OK(write(child ? to_child[1] : to_parent[1], "", 1));
        } else {
            OK(read(child ? to_parent[0] : to_child[0], buf, 1));
        }
    }
    if (child == 0) _exit(7);
    say_child("child", child);
    send_text(fd, "after the child");
}

static void partner(int fd) {
    for (int i = 0; i < 40; i++) {
        char text[16] = "";
        if (recv_all(fd, text, 10) != 10 || atoi(text + 8) != i) die(__LINE__, text);
        snprintf(text, sizeof text, "answer %02d", i);
        send_text(fd, text);
    }
    hear(fd, 15);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
