// SO_RCVLOWAT where an urgent byte is the next: a receive goes on past it, and waits for enough. Behind others it ends one.
#include "dual.h"

static void subject(int fd) {
    int least = 10;
    OK(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least));
    tell_number(gettid());
    TRY(recv(fd, buf, 100, 0));
    tell();
    say_poll("urgent", fd, POLLPRI, -1);
    TRY(recv(fd, buf, 100, 0));
    tell();
    recv_to_end(fd);
}

static void partner(int fd) {
    pid_t sleeper = await_number();
    OK(send(fd, "!", 1, MSG_OOB));
    send_filled(fd, 3);
    wait_asleep(sleeper);
    send_filled(fd, 10);
    await();
    send_filled(fd, 4);
    OK(send(fd, "!", 1, MSG_OOB));
    await();
    send_filled(fd, 20);
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
