// One set passed to select for reading and for exceptions, or for all three, as careless programs do: the kernel writes the same memory more than once.
#include "dual.h"
#include <sys/select.h>

enum { READ = 1, WRITE = 2, EXCEPT = 4 };

static void choose(const char *when, int fd, int which, long ms) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    fd_set *volatile same = &set;
    int count = select(fd + 1, which & READ ? same : NULL, which & WRITE ? same : NULL, which & EXCEPT ? same : NULL, &limit);
    say("%s: %d %d", when, count, FD_ISSET(fd, &set) != 0);
}

static void subject(int fd) {
    choose("nothing to read", fd, READ | EXCEPT, 0);
    for (int turn = 0; turn < 3; turn++) {
        tell();
        settle(fd, 5);
        hear(fd, 1);
        choose("read and except", fd, READ | EXCEPT, 2000);
        choose("except and read, no time", fd, READ | EXCEPT, 0);
        choose("all three", fd, READ | WRITE | EXCEPT, 2000);
        choose("read and write", fd, READ | WRITE, 2000);
        choose("write and except", fd, WRITE | EXCEPT, 2000);
        hear(fd, 4);
    }
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    tell();
    fd_set *volatile same = &set;
    settle(fd, 4);
    hear(fd, 1);
    say("as long as it takes: %d", select(fd + 1, &set, NULL, same, NULL));
    hear(fd, 3);
}

static void partner(int fd) {
    for (int turn = 0; turn < 3; turn++) {
        await();
        send_text(fd, ".data");
    }
    await();
    send_text(fd, "last");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
