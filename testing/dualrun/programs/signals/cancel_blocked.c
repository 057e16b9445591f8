// Cancellation that is pending acts at recv and send, which are cancellation points, and not while it is disabled.
#include "dual.h"

static int connection;

static void *run(void *with) {
    int old;
    ZERO(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old));
    pthread_cancel(pthread_self());
    TRY(send(connection, "disabled", 8, 0));
    TRY(recv(connection, buf, 4, MSG_WAITALL));
    ZERO(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old));
    if (with) TRY(send(connection, "enabled", 7, 0));
    else TRY(recv(connection, buf, 4, 0));
    say("came here");
    return NULL;
}

static void subject(int fd) {
    connection = fd;
    for (intptr_t sending = 0; sending < 2; sending++)
        say("cancelled: %d", finish(start(run, (void *)sending)) == PTHREAD_CANCELED);
}

static void partner(int fd) {
    send_text(fd, "datadata");
    hear(fd, 16);
    settle_end(fd);
    TRY(recv(fd, buf, 1, 0));
}

SUBJECT_AND_PARTNER(subject, partner)
