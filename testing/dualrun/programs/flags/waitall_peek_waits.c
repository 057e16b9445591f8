// MSG_WAITALL with MSG_PEEK sleeps when only a part has come, and sees all of it later; the same with SO_RCVLOWAT, and when the end comes first.
#include "dual.h"

static void *when_asleep(void *reader) {
    wait_asleep(*(int *)reader);
    tell();
    return NULL;
}

static void looks(int fd, size_t bytes, int flags) {
    int reader = gettid();
    pthread_t teller = start(when_asleep, &reader);
    TRY(recv(fd, buf, bytes, MSG_PEEK | flags));
    say("%.10s", buf);
    pthread_join(teller, NULL);
}

static void subject(int fd) {
    meet();
    settle(fd, 5);
    looks(fd, 10, MSG_WAITALL);
    int ten = 10;
    TRY(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &ten, sizeof ten));
    TRY(recv(fd, buf, 5, 0));
    looks(fd, 20, 0);
    TRY(recv(fd, buf, 5, 0));
    looks(fd, 20, MSG_WAITALL);
    TRY(recv(fd, buf, 5, 0));
}

static void partner(int fd) {
    send_text(fd, "01234");
    meet();
    await();
    send_text(fd, "56789");
    await();
    send_text(fd, "abcde");
    await();
    shutdown(fd, SHUT_WR);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
