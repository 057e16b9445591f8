// Children by vfork and exec, by fork and exec, and by posix_spawn wait on an inherited set, one after the other; then this program goes on with it.
#include "inherited.h"
#include <spawn.h>

static void again(const char *what, int fd) {
    say_event(what, FIRST_SET, -1);
    hear(fd, 4);
    talk_by_set(what, FIRST_SET, fd);
}

static void subject(int fd) {
    int set = set_to_inherit();
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x123456789abcdef};
    OK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    talk_by_set("before", set, fd);
    char *path = self();
    for (int way = 0; way < 3; way++) {
        char **words = words_again(path, way == 0 ? "vfork" : way == 1 ? "fork" : "posix_spawn", fd);
        pid_t child;
        send_text(fd, "next");
        if (way == 2) {
            ZERO(posix_spawn(&child, path, NULL, NULL, words, environ));
        } else {
            child = way == 0 ? vfork() : OK(fork());
            if (child == 0) {
                execv(path, words);
                _exit(99);
            }
        }
        say_child("child", child);
        say_event("nothing", set, 0);
        talk_by_set("this program", set, fd);
    }
}

static void partner(int fd) {
    listen_by_set(fd);
    for (int way = 0; way < 3; way++) {
        hear(fd, 4);
        send_text(fd, "data");
        listen_by_set(fd);
        listen_by_set(fd);
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
