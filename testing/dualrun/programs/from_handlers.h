// A handler comes again and again into the sends of its thread, and has another process write a byte to the connection each second time: no byte of either is lost.
#ifndef DUAL_FROM_HANDLERS_H
#define DUAL_FROM_HANDLERS_H

#include "alarms.h"

enum { OTHERS = 30 };

static int connection;
static long from_others, failed;

// Begins another process and waits for it: one that writes an 'H', or only ends. Whether all went well.
static int (*begin_other)(int writes);

SHARED int by_system(int writes) {
    char script[64];
    snprintf(script, sizeof script, writes ? "printf H >&%d" : "exit 3", connection);
    return system(script) == (writes ? 0 : 3 << 8);
}

SHARED int by_fork(int writes) {
    pid_t child = fork();
    if (child == 0) _exit(!writes ? 3 : send(connection, "H", 1, MSG_NOSIGNAL) != 1);
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return status == (writes ? 0 : 3 << 8);
}

static void begin_others(int signal) {
    (void)signal;
    int saved = errno;
    if (alarms++ < OTHERS) {
        int writes = alarms % 2;
        if (!begin_other(writes)) failed++;
        else from_others += writes;
    }
    errno = saved;
}

SHARED void send_beside_others(int fd, int (*begin)(int writes)) {
    connection = fd;
    begin_other = begin;
    handle(SIGALRM, begin_others, SA_RESTART);
    alarms_every_ms(10);
    memset(buf, 'm', 4000);
    long sent = 0;
    for (int i = 0; alarms < OTHERS; i++)
        sent += OK(send(fd, buf, 1 + i % 4000, 0));
    alarms_every_ms(0);
    say("processes that failed: %ld", failed);
    tell_number(from_others);
    tell_number(sent);
    OK(shutdown(fd, SHUT_WR));
    hear(fd, 2);
}

// While a process has the connection from before the first handler to after the last, and does nothing with it.
SHARED void send_beside_a_keeper(int fd, int (*begin)(int writes)) {
    int gate[2];
    OK(pipe2(gate, O_CLOEXEC));
    pid_t keeper = OK(fork());
    if (keeper == 0) {
        close(gate[1]);
        _exit(read(gate[0], buf, 1) != 0);
    }
    close(gate[0]);
    send_beside_others(fd, begin);
    close(gate[1]);
    OK(waitpid(keeper, NULL, 0));
}

static void partner(int fd) {
    long others = 0, own = 0, strange = 0;
    ssize_t got;
    while ((got = recv(fd, buf, sizeof buf, 0)) > 0)
        for (ssize_t i = 0; i < got; i++) {
            others += buf[i] == 'H';
            own += buf[i] == 'm';
            strange += buf[i] != 'H' && buf[i] != 'm';
        }
    say_result("the last recv", got);
    say("all of the others' bytes: %d", others == await_number());
    say("all of the program's: %d, strange ones: %ld", own == await_number(), strange);
    send_text(fd, "ok");
}

#endif
