// fork while another thread sends, several times: the stream stays what it was, and the children can send after it.
#include "dual.h"

enum { TOTAL = 8 << 20, CHILDREN = 8 };

static void *sends(void *with) {
    send_filled(*(int *)with, TOTAL);
    return NULL;
}

static void subject(int fd) {
    int gate[2];
    OK(pipe(gate));
    pthread_t thread = start(sends, &fd);
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = OK(fork());
        if (children[i] == 0) {
            OK(read(gate[0], buf, 1));
            if (send(fd, "c", 1, 0) != 1) die(__LINE__, "send");
            _exit(i);
        }
        sched_yield();
    }
    finish(thread);
    OK(write(gate[1], buf, CHILDREN));
    for (int i = 0; i < CHILDREN; i++) say_child("child", children[i]);
    OK(shutdown(fd, SHUT_WR));
    hear(fd, 2);
}

static void partner(int fd) {
    recv_filled(fd, TOTAL);
    hear(fd, CHILDREN);
    TRY(recv(fd, buf, 1, 0));
    send_text(fd, "ok");
}

SUBJECT_AND_PARTNER(subject, partner)
