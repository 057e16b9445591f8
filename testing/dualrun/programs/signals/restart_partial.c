// A signal whose handler asks for calls to be restarted comes while part has moved: the call returns with that part.
#include "alarms.h"

enum { MUCH = 64 << 20 };

static void subject(int fd) {
    alarms_begin(SA_RESTART);
    TRY(recv(fd, buf, 8, MSG_WAITALL));
    tell();
    char *data = calloc(1, MUCH);
    ssize_t sent = send(fd, data, MUCH, 0);
    say("sent some: %d", sent > 0 && sent < MUCH);
    alarms_end();
    tell();
    recv_all(fd, buf, 5);
}

static void partner(int fd) {
    OK(send(fd, "abc", 3, 0));
    await();
    await();
    OK(send(fd, "defgh", 5, 0));
    while (recv(fd, buf, sizeof buf, 0) > 0) {}
}

SUBJECT_AND_PARTNER(subject, partner)
