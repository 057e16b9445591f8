// SO_RCVLOWAT where urgent data has come: a set tells an edge when there is enough, and who sleeps wakes for that.
#include "epoll.h"

static void subject(int fd) {
    int least = 10;
    OK(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least));
    int set = set_of(fd, EPOLLIN | EPOLLET);
    tell();
    say_poll("urgent", fd, POLLPRI, -1);
    TRY(recv(fd, buf, 1, MSG_OOB));
    say_set("nothing", set, 0);
    for (int turn = 0; turn < 3; turn++) {
        tell();
        say_set("enough", set, -1);
        say_set("told", set, 0);
        TRY(recv(fd, buf, 1000, MSG_DONTWAIT));
    }
    tell_number(gettid());
    TRY(recv(fd, buf, 1000, 0));
}

static void partner(int fd) {
    await();
    OK(send(fd, "!", 1, MSG_OOB));
    for (int turn = 0; turn < 3; turn++) {
        await();
        send_filled(fd, 100);
    }
    wait_asleep(await_number());
    send_filled(fd, 100);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
