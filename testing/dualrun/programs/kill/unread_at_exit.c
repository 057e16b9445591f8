// A process that ends with data unread, without a close, resets the connection, however it ends; what it sent before can still be read.
#include "dual.h"

static void subject(void) {
    for (int round = 0; round < 3; round++) {
        int fd = connected();
        pid_t child = OK(fork());
        if (child == 0) {
            send_text(fd, "last words");
            settle(fd, 6);
            tell();
            if (round == 0) _exit(0);
            if (round == 1) raise(SIGKILL);
            exit(0);
        }
        OK(close(fd));
        say_child("child", child);
        tell();
    }
}

static void partner(void) {
    signal(SIGPIPE, SIG_IGN);
    for (int round = 0; round < 3; round++) {
        int fd = connected();
        send_text(fd, "unread");
        await();
        await();
        TRY(recv(fd, buf, 100, 0));
        say_poll("reset", fd, POLLIN | POLLRDHUP, -1);
        TRY(recv(fd, buf, 100, 0));
        TRY(recv(fd, buf, 100, 0));
        TRY(send(fd, "x", 1, 0));
        close(fd);
    }
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
