// A thread sends more than fits to a program that is not preloaded while another closes the descriptor: all of it arrives, and then the end.
#include "again.h"
#include "closes.h"

enum { BEGIN = 200, BEGUN = 201 };

static void again(const char *what, int fd) {
    say("%s, preloaded: %d", what, getenv("LD_PRELOAD") != NULL);
    OK(write(BEGUN, "b", 1));
    OK(read(BEGIN, buf, 1));
    recv_to_end(fd);
}

static void subject(int fd) {
    await();
    close_beside_sender(fd);
}

static void partner(int fd) {
    int begin[2], begun[2];
    OK(pipe(begin));
    OK(pipe(begun));
    OK(unsetenv("LD_PRELOAD"));
    pid_t child = OK(fork());
    if (child == 0) {
        OK(dup2(begin[0], BEGIN));
        OK(dup2(begun[1], BEGUN));
        OK(execv(self(), words_again(self(), "the stranger", fd)));
    }
    OK(close(fd));
    OK(read(begun[0], buf, 1));
    tell();
    await();
    OK(write(begin[1], "b", 1));
    say_child("child", child);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
