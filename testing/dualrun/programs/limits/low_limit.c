// A limit that leaves room for two more: socket, accept, dup, pipe and open say EMFILE, and the connection goes on.
#include "dual.h"
#include <sys/epoll.h>
#include <sys/resource.h>

static void subject(int fd) {
    int listener = listening(AF_INET);
    int waiting = connect_port(AF_INET, port_of(listener));
    struct rlimit limit;
    OK(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = waiting + 1;
    OK(setrlimit(RLIMIT_NOFILE, &limit));
    TRY(socket(AF_INET, SOCK_STREAM, 0));
    TRY(accept(listener, NULL, NULL));
    TRY(dup(fd));
    TRY(fcntl(fd, F_DUPFD, 0));
    TRY(dup2(fd, waiting + 1));
    int ends[2];
    TRY(pipe(ends));
    TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    TRY(epoll_create1(0));
    TRY(open("/dev/null", O_RDONLY));
    struct rlimit now;
    OK(getrlimit(RLIMIT_NOFILE, &now));
    say("the limit is what was set: %d", now.rlim_cur == limit.rlim_cur);
    send_text(fd, "still");
    hear(fd, 2);
    OK(close(waiting));
    int accepted = TRY_QUIETLY(accept(listener, NULL, NULL));
    say("the number: %d", accepted == waiting);
}

static void partner(int fd) {
    hear(fd, 5);
    send_text(fd, "ok");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
