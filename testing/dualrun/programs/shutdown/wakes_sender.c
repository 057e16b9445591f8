// Shutdown of the sending side by one thread ends the send in which another waits for room, and the waits for room of others.
#include "epoll.h"
#include <sys/select.h>

enum { PIECE = 16 << 20 };
static int connection;
static volatile int asleep;
static volatile sig_atomic_t raised;
static size_t total;

static void note(int signal) {
    (void)signal;
    raised++;
}

// The first call has moved something, and says how much; the one after it has not.
static void *sends(void *with) {
    char *data = malloc(PIECE);
    fill(data, PIECE, 0);
    asleep = gettid();
    ssize_t sent = send(connection, data, PIECE, 0);
    say("part: %d, SIGPIPE %d", sent > 0 && sent < PIECE, raised);
    total = sent;
    TRY(send(connection, data, 1, 0));
    say("SIGPIPE %d", raised);
    free(data);
    return with;
}

static void *polls(void *with) {
    asleep = gettid();
    say_poll("woken", connection, POLLOUT, -1);
    return with;
}

static void *selects(void *with) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(connection, &set);
    asleep = gettid();
    TRY(select(connection + 1, NULL, &set, NULL, NULL));
    return with;
}

static void *waits(void *with) {
    int set = set_of(connection, EPOLLOUT);
    asleep = gettid();
    say_set("woken", set, -1);
    OK(close(set));
    return with;
}

static pthread_t start_asleep(void *(*run)(void *)) {
    asleep = 0;
    pthread_t thread = start(run, NULL);
    while (asleep == 0) sched_yield();
    wait_asleep(asleep);
    return thread;
}

static size_t fill_up(int fd) {
    size_t filled = 0;
    ssize_t sent;
    do {
        fill(buf, 65536, filled);
        while ((sent = send(fd, buf, 65536, MSG_DONTWAIT)) > 0) fill(buf, 65536, filled += sent);
        if (errno != EAGAIN) die(__LINE__, "send");
    } while (is_room_to_come(fd));
    return filled;
}

// One connection for each, as the first ends it.
static void subject(void) {
    handle(SIGPIPE, note, 0);
    for (int how = SHUT_WR; how <= SHUT_RDWR; how++) {
        connection = connected();
        total = 0;
        pthread_t sender = start_asleep(sends);
        OK(shutdown(connection, how));
        finish(sender);
        tell_number(total);
        await();
        OK(close(connection));

        void *(*waiters[])(void *) = {polls, selects, waits};
        for (int i = 0; i < 3; i++) {
            connection = connected();
            tell_number(fill_up(connection));
            pthread_t waiter = start_asleep(waiters[i]);
            OK(shutdown(connection, how));
            finish(waiter);
            tell();
            await();
            OK(close(connection));
        }
    }
}

static void partner(void) {
    for (int turn = 0; turn < 8; turn++) {
        int fd = connected();
        int64_t sent = await_number(), got = 0;
        if (turn % 4 != 0) await();
        for (ssize_t part; (part = recv(fd, buf, sizeof buf, 0)) > 0; got += part)
            if (!as_filled(buf, part, got)) die(__LINE__, "other bytes than were sent");
        say("all of it: %d", got == sent);
        tell();
        OK(close(fd));
    }
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
