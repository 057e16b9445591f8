// A connection is closed by an instruction of the program's own, and its number is given to another connection that an instruction begins.
#include "past.h"

static void replaced_by_instruction(int fd, in_port_t port) {
    OK(past(SYS_close, fd, 0, 0));
    int next = past(SYS_socket, AF_INET, SOCK_STREAM, 0);
    say("the same number: %d", next == fd);
    struct sockaddr_storage address;
    socklen_t length = loopback(AF_INET, port, &address);
    OK(connect(next, (struct sockaddr *)&address, length));
    ask(next);
    OK(close(next));
}

static void subject(void) {
    int fds[2];
    for (int i = 0; i < 2; i++) fds[i] = connected();
    in_port_t port = await_number();
    replaced_by_instruction(fds[0], port);
    ask(fds[1]);
    OK(close(fds[1]));
}

static void partner(void) {
    int fds[2];
    for (int i = 0; i < 2; i++) fds[i] = connected();
    int listener = listening(AF_INET);
    tell_number(port_of(listener));
    answer_at(listener);
    OK(close(listener));
    hear(fds[1], 6);
    send_text(fds[1], "answer");
    for (int i = 0; i < 2; i++) recv_to_end(fds[i]);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
