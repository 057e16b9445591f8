// Options of the socket in the next program, and in one after it that is not preloaded.
#include "again.h"

static void says_options(int fd) {
    int nodelay, cork, least;
    socklen_t length = sizeof nodelay;
    OK(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &length));
    OK(getsockopt(fd, IPPROTO_TCP, TCP_CORK, &cork, &length));
    OK(getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, &length));
    say("nodelay %d cork %d low water %d", nodelay, cork, least);
}

static void again(const char *what, int fd) {
    says_options(fd);
    if (strcmp(what, "last") == 0) return;
    send_text(fd, "some");
    settle(fd, 4);
    say_poll("4 of 9", fd, POLLIN, 0);
    send_text(fd, "more");
    say_poll("11 of 9", fd, POLLIN, -1);
    TRY(recv(fd, buf, 100, 0));
    int on = 1;
    OK(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on));
    OK(unsetenv("LD_PRELOAD"));
    OK(execv(self(), words_again(self(), "last", fd)));
}

static void subject(int fd) {
    int least = 9;
    OK(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least));
    OK(execv(self(), words_again(self(), "next", fd)));
}

static void partner(int fd) {
    hear(fd, 4);
    send_text(fd, "abcd");
    hear(fd, 4);
    send_text(fd, "efghijk");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
