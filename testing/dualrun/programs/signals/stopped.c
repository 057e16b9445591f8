// A process that is stopped and goes on while it sleeps in calls: only those end that the kernel ends.
#include "epoll.h"

static void handler(int signal) { (void)signal; }

// A child stops and continues its parent, asleep, some times; then says that it has.
static pid_t stopper(pid_t of, int then) {
    pid_t child = OK(fork());
    if (child == 0) {
        for (int i = 0; i < 5; i++) {
            wait_asleep(of);
            kill(of, SIGSTOP);
            char path[64], stat[512];
            snprintf(path, sizeof path, "/proc/%d/stat", of);
            for (;;) {
                int fd = open(path, O_RDONLY);
                ssize_t got = read(fd, stat, sizeof stat - 1);
                close(fd);
                stat[got > 0 ? got : 0] = 0;
                const char *after = strrchr(stat, ')');
                if (after && after[2] == 'T') break;
                sched_yield();
            }
            kill(of, SIGCONT);
        }
        wait_asleep(of);
        if (then) tell();
        _exit(0);
    }
    return child;
}

static void subject(int fd) {
    handle(SIGUSR1, handler, 0);
    handle(SIGUSR2, handler, SA_RESTART);
    pid_t child = stopper(getpid(), 1);
    hear(fd, 4);
    say_child("stopper", child);
    child = stopper(getpid(), 1);
    say_poll("poll", fd, POLLIN, -1);
    hear(fd, 4);
    say_child("stopper", child);
}

static void partner(int fd) {
    for (int i = 0; i < 2; i++) {
        await();
        send_text(fd, "data");
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
