// SO_RCVLOWAT: neither recv nor poll wakes for less.
#include "dual.h"

static void subject(int fd) {
    int least = 10, got = 0;
    socklen_t length = sizeof got;
    OK(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least));
    OK(getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &got, &length));
    say("%d", got);
    meet();
    settle(fd, 4);
    say_poll("4 of 10", fd, POLLIN, 0);
    tell();
    say_poll("12 of 10", fd, POLLIN, -1);
    TRY(recv(fd, buf, 100, 0));
    tell_number(gettid());
    TRY(recv(fd, buf, 100, 0)); // waits for 10, which come in two pieces
    tell();
    settle(fd, 3);
    TRY(recv(fd, buf, 100, MSG_DONTWAIT));
    tell();
    settle_end(fd);
    say_poll("2 and the end", fd, POLLIN, -1);
    TRY(recv(fd, buf, 100, 0));
    TRY(recv(fd, buf, 100, 0));
}

static void partner(int fd) {
    meet();
    send_text(fd, "four");
    await();
    send_text(fd, "and8more");
    // One that found the first piece there would take it, and the kernel, which counts what is left, would not wake it for the second.
    wait_asleep(await_number());
    send_text(fd, "first");
    send_text(fd, "second");
    await();
    send_text(fd, "abc");
    await();
    send_text(fd, "de");
    shutdown(fd, SHUT_WR);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
