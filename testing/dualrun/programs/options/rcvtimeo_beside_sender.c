// SO_RCVTIMEO while another thread waits for room to send on the same connection.
#include "dual.h"

// More than TCP over loopback holds.
enum { LENGTH = 64 << 20 };

static int connection;

static void *sends(void *unused) {
    (void)unused;
    tell_number(gettid());
    char *data = calloc(1, LENGTH);
    say("sent all: %d", send_all(connection, data, LENGTH) == LENGTH);
    free(data);
    return NULL;
}

static void subject(int fd) {
    connection = fd;
    struct timeval some = {0, 30000};
    OK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &some, sizeof some));
    pthread_t sender = start(sends, NULL);
    await();
    TRY(recv(fd, buf, 10, 0));
    TRY(recv(fd, buf, 10, MSG_PEEK));
    tell();
    settle(fd, 4);
    TRY(recv(fd, buf, 10, MSG_WAITALL));
    tell();
    finish(sender);
}

static void partner(int fd) {
    wait_asleep(await_number());
    tell();
    await();
    send_text(fd, "some");
    await();
    size_t got = 0;
    while (got < LENGTH) got += OK(recv(fd, buf, sizeof buf, 0));
    say("received all: %d", got == LENGTH);
}

SUBJECT_AND_PARTNER(subject, partner)
