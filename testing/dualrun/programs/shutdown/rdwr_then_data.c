// What comes to an end that is shut both ways, at once or one after the other, is answered by a reset. What was sent before can be read at both ends.
#include "dual.h"

static const int hows[][2] = {{SHUT_RDWR, SHUT_RDWR}, {SHUT_RD, SHUT_WR}, {SHUT_WR, SHUT_RD}};
enum { WAYS = sizeof hows / sizeof *hows };

static void subject(int fd) {
    signal(SIGPIPE, SIG_IGN);
    for (int way = 0; way < WAYS; way++) {
        if (way > 0) fd = connected();
        send_text(fd, "last");
        settle(fd, 6);
        for (int i = 0; i < 2; i++) TRY(shutdown(fd, hows[way][i]));
        say_poll("shut", fd, POLLIN | POLLRDHUP | POLLOUT, 0);
        tell();
        await();
        hear(fd, 6);
        say_poll("reset", fd, POLLIN | POLLRDHUP | POLLOUT, 0);
        TRY(recv(fd, buf, 1, 0));
        TRY(recv(fd, buf, 1, 0));
        TRY(send(fd, "x", 1, 0));
        TRY(close(fd));
        tell();
    }
}

static void partner(int fd) {
    signal(SIGPIPE, SIG_IGN);
    struct sockaddr_storage name;
    socklen_t length;
    for (int way = 0; way < WAYS; way++) {
        if (way > 0) fd = connected();
        send_text(fd, "before");
        await();
        settle_end(fd);
        say_poll("its end", fd, POLLIN | POLLRDHUP | POLLOUT, 0);
        length = sizeof name;
        TRY(getpeername(fd, (struct sockaddr *)&name, &length));
        TRY(send(fd, "after", 5, 0));
        // Over loopback the answer has come with that.
        say_poll("reset", fd, POLLIN | POLLRDHUP | POLLOUT, 0);
        length = sizeof name;
        TRY(getpeername(fd, (struct sockaddr *)&name, &length));
        TRY(send(fd, "after", 5, 0));
        tell();
        await();
        recv_to_end(fd);
        TRY(close(fd));
    }
}

SUBJECT_AND_PARTNER(subject, partner)
