// TCP_NODELAY and TCP_CORK are kept and read back; what is corked comes when the cork is drawn.
#include "dual.h"

static int option(int fd, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    OK(getsockopt(fd, IPPROTO_TCP, name, &value, &length));
    return value;
}

static void subject(int fd) {
    int on = 1, off = 0;
    say("nodelay %d cork %d", option(fd, TCP_NODELAY), option(fd, TCP_CORK));
    TRY(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
    say("nodelay %d cork %d", option(fd, TCP_NODELAY), option(fd, TCP_CORK));
    send_text(fd, "a");
    TRY(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on));
    say("nodelay %d cork %d", option(fd, TCP_NODELAY), option(fd, TCP_CORK));
    send_text(fd, "b");
    send_text(fd, "c");
    TRY(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &off, sizeof off));
    hear(fd, 2);
    TRY(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &off, sizeof off));
    say("nodelay %d cork %d", option(fd, TCP_NODELAY), option(fd, TCP_CORK));
    TRY(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on));
    send_text(fd, "corked");
    shutdown(fd, SHUT_WR);
    recv_to_end(fd);
}

static void partner(int fd) {
    hear(fd, 3);
    send_text(fd, "ok");
    hear(fd, 6);
}

SUBJECT_AND_PARTNER(subject, partner)
