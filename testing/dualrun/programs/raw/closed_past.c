// A connection is closed by an instruction of the program's own, and its number is given to something else: another connection, a pipe, a pair.
#include "past.h"

static void replaced_by_function(int fd, in_port_t port) {
    OK(past(SYS_close, fd, 0, 0));
    int next = connect_port(AF_INET, port);
    say("the same number: %d", next == fd);
    ask(next);
    OK(close(next));
}

static void say_pair(const char *what, int fd, int pair[2]) {
    say("%s: the same number: %d", what, pair[0] == fd);
    TRY(write(pair[1], "piece", 5));
    TRY(read(pair[0], buf, 5));
    OK(close(pair[0]));
    OK(close(pair[1]));
}

static void subject(void) {
    int fds[5];
    for (int i = 0; i < 5; i++) fds[i] = connected();
    in_port_t port = await_number();
    replaced_by_function(fds[0], port);
    int pair[2];
    OK(past(SYS_close, fds[1], 0, 0));
    OK(pipe(pair));
    say_pair("pipe", fds[0], pair);
    OK(past(SYS_close, fds[2], 0, 0));
    OK(pipe2(pair, O_CLOEXEC));
    say_pair("pipe2", fds[0], pair);
    OK(past(SYS_close, fds[3], 0, 0));
    OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    say_pair("socketpair", fds[0], pair);
}

static void partner(void) {
    int fds[5];
    for (int i = 0; i < 5; i++) fds[i] = connected();
    int listener = listening(AF_INET);
    tell_number(port_of(listener));
    answer_at(listener);
    OK(close(listener));
    for (int i = 0; i < 5; i++) recv_to_end(fds[i]);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
