// A process of one thread, which uses a connection and a set, gets its first other thread, and both go on using them: each record arrives whole. Once in the
// program itself, and once in each of its children.
#include "dual.h"
#include <sys/epoll.h>

enum { CHILDREN = 24, RECORDS = 200, LENGTH = 64 };

static int connection;

static void sends(char letter) {
    char record[LENGTH];
    memset(record, letter, LENGTH);
    for (int i = 0; i < RECORDS; i++)
        if (send(connection, record, LENGTH, MSG_NOSIGNAL) != LENGTH) die(__LINE__, "send");
}

static void *other(void *set) {
    struct epoll_event event;
    for (int i = 0; i < RECORDS; i++)
        if (epoll_wait(*(int *)set, &event, 1, -1) != 1) die(__LINE__, "epoll_wait");
    sends('b');
    return NULL;
}

static void as_one_and_as_two(void) {
    int set = OK(epoll_create1(0));
    struct epoll_event event = {.events = EPOLLOUT};
    OK(epoll_ctl(set, EPOLL_CTL_ADD, connection, &event));
    sends('a');
    if (epoll_wait(set, &event, 1, -1) != 1) die(__LINE__, "epoll_wait");
    pthread_t thread = start(other, &set);
    sends('c');
    if (epoll_wait(set, &event, 1, -1) != 1) die(__LINE__, "epoll_wait");
    finish(thread);
    sends('d');
    close(set);
}

static void subject(int fd) {
    connection = fd;
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = OK(fork());
        if (child == 0) {
            as_one_and_as_two();
            _exit(0);
        }
        int status;
        OK(waitpid(child, &status, 0));
        if (status != 0) say("child: %d", status);
    }
    as_one_and_as_two();
    OK(shutdown(fd, SHUT_WR));
    hear(fd, 2);
}

static void partner(int fd) {
    int counts[4] = {0}, torn = 0;
    char record[LENGTH];
    while (recv_all(fd, record, LENGTH) == LENGTH) {
        for (int i = 1; i < LENGTH; i++) torn += record[i] != record[0];
        if (record[0] >= 'a' && record[0] < 'e') counts[record[0] - 'a']++;
    }
    for (int i = 0; i < 4; i++) say("%c: %d", 'a' + i, counts[i]);
    say("torn %d", torn);
    send_text(fd, "ok");
}

SUBJECT_AND_PARTNER(subject, partner)
