// A handler forks, and makes and closes an epoll instance, while its own thread forks; then another thread uses the connection, and a set that there was before.
#include "alarms.h"
#include "epoll.h"

enum { TIMES = 300 };

static int failed;

// A child that ends at once.
static void brief(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    failed += status != 0;
}

static void forks_too(int signal) {
    (void)signal;
    if (alarms++ >= TIMES) return;
    int saved = errno;
    int made = epoll_create1(EPOLL_CLOEXEC);
    if (made < 0 || close(made) != 0) failed++;
    brief();
    errno = saved;
}

static int set;

static void *uses(void *with) {
    int fd = *(int *)with;
    say_set("asked by another thread", set, 0);
    send_text(fd, "done");
    say_set("answered", set, -1);
    hear(fd, 6);
    return NULL;
}

static void subject(int fd) {
    set = set_of(fd, EPOLLIN);
    say_set("before", set, 0);
    handle(SIGALRM, forks_too, SA_RESTART);
    alarms_every_ms(1);
    while (alarms < TIMES) brief();
    alarms_every_ms(0);
    say("failed %d", failed);
    finish(start(uses, &fd));
}

static void partner(int fd) {
    hear(fd, 4);
    send_text(fd, "answer");
}

SUBJECT_AND_PARTNER(subject, partner)
