// A thread with the smallest stack that there is calls everything that moves bytes or waits for them, with empty pieces among them.
#include "epoll.h"
#include <limits.h>
#include <sys/select.h>

enum { MANY = 1024 };
static struct iovec pieces[MANY];
static int connection;

// Every second piece is empty and no memory.
static void set_pieces(int count) {
    memset(pieces, 0, sizeof pieces);
    for (int i = 0; i < count; i += 2) pieces[i] = (struct iovec){buf + i, 1};
}

static void *calls(void *with) {
    int fd = connection;
    set_pieces(4);
    TRY(writev(fd, pieces, 4));
    set_pieces(MANY);
    TRY(writev(fd, pieces, MANY));
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = MANY};
    TRY(sendmsg(fd, &message, 0));
    TRY(send(fd, "x", 1, 0));
    TRY(write(fd, "y", 1));
    meet();
    struct pollfd one = {.fd = fd, .events = POLLIN};
    TRY(poll(&one, 1, -1));
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    TRY(select(fd + 1, &set, NULL, NULL, NULL));
    int instance = set_of(fd, EPOLLIN);
    say_set("waited", instance, -1);
    OK(close(instance));
    settle(fd, 1000);
    set_pieces(4);
    TRY(readv(fd, pieces, 4));
    set_pieces(MANY);
    TRY(readv(fd, pieces, MANY));
    TRY(recvmsg(fd, &message, 0) > 0);
    TRY(recv(fd, NULL, 400, MSG_TRUNC | MSG_PEEK) > 0);
    TRY(recv(fd, NULL, 4, MSG_TRUNC));
    TRY(recv(fd, buf, 10, MSG_PEEK) > 0);
    return with;
}

static void subject(int fd) {
    connection = fd;
    fill(buf, sizeof buf, 0);
    pthread_attr_t attributes;
    pthread_t thread;
    ZERO(pthread_attr_init(&attributes));
    ZERO(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN));
    ZERO(pthread_create(&thread, &attributes, calls, NULL));
    finish(thread);
    OK(shutdown(fd, SHUT_WR));
    while (recv(fd, buf, sizeof buf, 0) > 0) {}
}

static void partner(int fd) {
    int64_t got = 0;
    char *to = malloc(65536);
    got += recv_all(fd, to, 2 + 512 + 512 + 2);
    say("%ld bytes, of which the last are %.2s", (long)got, to + got - 2);
    free(to);
    meet();
    send_filled(fd, 2000);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
