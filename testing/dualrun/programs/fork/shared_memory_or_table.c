// clone without and with CLONE_VM, and with CLONE_FILES beside: a child closes a connection. Where it shares the table the number is free, and another
// connection's.
#include "past.h"

static int closes(void *fd) {
    close((int)(intptr_t)fd);
    return 0;
}

// The connection that is there afterwards.
static int close_in_child(int fd, int flags, in_port_t port) {
    static char stack[3][1 << 16] __attribute__((aligned(16)));
    static int turn;
    char *top = stack[turn++] + sizeof *stack;
    int child = OK(clone(closes, top, flags | SIGCHLD, (void *)(intptr_t)fd));
    int status;
    OK(waitpid(child, &status, 0));
    say("%s memory, %s table: exit %d", flags & CLONE_VM ? "one" : "two", flags & CLONE_FILES ? "one" : "two", status);
    if (fcntl(fd, F_GETFD) < 0) {
        int next = connect_port(AF_INET, port);
        say("the same number: %d", next == fd);
        fd = next;
    }
    ask(fd);
    return fd;
}

static void subject(void) {
    static const int flags[] = {0, CLONE_VM, CLONE_VM | CLONE_FILES};
    int fds[3];
    for (int i = 0; i < 3; i++) fds[i] = connected();
    in_port_t port = await_number();
    for (int i = 0; i < 3; i++) fds[i] = close_in_child(fds[i], flags[i], port);
    for (int i = 0; i < 3; i++) OK(close(fds[i]));
}

static void partner(void) {
    int fds[3];
    for (int i = 0; i < 3; i++) fds[i] = connected();
    int listener = listening(AF_INET);
    tell_number(port_of(listener));
    for (int i = 0; i < 2; i++) {
        hear(fds[i], 6);
        send_text(fds[i], "answer");
    }
    for (int i = 2; i < 3; i++) answer_at(listener);
    for (int i = 0; i < 3; i++) recv_to_end(fds[i]);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
