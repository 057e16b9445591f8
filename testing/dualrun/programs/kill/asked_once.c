// The other end is killed while nobody calls. Who asks once whether the connection is still good, or sends little, is told.
#include "dual.h"
#include <time.h>

static void await_state(int fd, int is_over) {
    struct tcp_info info = {0};
    socklen_t length;
    do {
        sched_yield();
        length = sizeof info;
        OK(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length));
    } while (info.tcpi_state == TCP_ESTABLISHED || (is_over && info.tcpi_state != TCP_CLOSE));
}

static void pass_ms(long ms) {
    struct timespec begun, now;
    OK(clock_gettime(CLOCK_MONOTONIC, &begun));
    do OK(clock_gettime(CLOCK_MONOTONIC, &now));
    while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < ms);
}

static void subject(void) {
    int fds[2];
    connected_twice(fds);
    meet();
    TRY(recv(fds[0], buf, 1, MSG_PEEK | MSG_DONTWAIT));
    meet();
    meet();
    await_state(fds[0], 0);
    // Nobody asks the kernel more often than once in some milliseconds.
    pass_ms(20);
    TRY(recv(fds[0], buf, 1, MSG_PEEK | MSG_DONTWAIT));
    await_state(fds[1], 0);
    TRY(send(fds[1], "a", 1, MSG_NOSIGNAL));
    await_state(fds[1], 1);
    pass_ms(20);
    say("%s", send(fds[1], "b", 1, MSG_NOSIGNAL) < 0 ? "told" : "not told");
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    pid_t child = OK(fork());
    if (child == 0) {
        recv(fds[1], buf, 1, 0);
        _exit(1);
    }
    OK(close(fds[0]));
    OK(close(fds[1]));
    wait_asleep(child);
    meet();
    meet();
    OK(kill(child, SIGKILL));
    say_child("other end", child);
    meet();
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
