// SO_RCVLOWAT: who sleeps is woken when enough has come, by poll and by recv.
#include "dual.h"

static void subject(int fd) {
    int least = 10;
    OK(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least));
    tell_number(gettid());
    say_poll("10 of 10", fd, POLLIN, -1);
    TRY(recv(fd, buf, 100, 0));
    tell();
    TRY(recv(fd, buf, 100, 0));
}

static void partner(int fd) {
    int asleep = await_number();
    wait_asleep(asleep);
    send_text(fd, "0123456789");
    await();
    wait_asleep(asleep);
    send_text(fd, "9876543210");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
