// A handler forks in the middle of the program's sends, and the children write to the connection: no byte of either is lost.
#include "alarms.h"

enum { CHILDREN = 30 };

static int connection;
static long from_children, failed;

static void forks(int signal) {
    (void)signal;
    int saved = errno;
    if (alarms++ < CHILDREN) {
        int writes = alarms % 2;
        pid_t child = fork();
        if (child == 0) _exit(!writes ? 3 : send(connection, "H", 1, MSG_NOSIGNAL) != 1);
        int status = -1;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
        if (status != (writes ? 0 : 3 << 8)) failed++;
        else from_children += writes;
    }
    errno = saved;
}

static void subject(int fd) {
    connection = fd;
    handle(SIGALRM, forks, SA_RESTART);
    alarms_every_ms(10);
    memset(buf, 'm', 4000);
    long sent = 0;
    for (int i = 0; alarms < CHILDREN; i++)
        sent += OK(send(fd, buf, 1 + i % 4000, 0));
    alarms_every_ms(0);
    say("children that failed: %ld", failed);
    tell_number(from_children);
    tell_number(sent);
    OK(shutdown(fd, SHUT_WR));
    hear(fd, 2);
}

static void partner(int fd) {
    long children = 0, own = 0, other = 0;
    ssize_t got;
    while ((got = recv(fd, buf, sizeof buf, 0)) > 0)
        for (ssize_t i = 0; i < got; i++) {
            children += buf[i] == 'H';
            own += buf[i] == 'm';
            other += buf[i] != 'H' && buf[i] != 'm';
        }
    say_result("the last recv", got);
    say("all of the children's bytes: %d, others: %ld", children == await_number(), other);
    send_text(fd, "ok");
}

SUBJECT_AND_PARTNER(subject, partner)
