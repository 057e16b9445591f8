// An exec that fails leaves sets as they were, whatever the program would have been.
#include "inherited.h"

static void again(const char *what, int fd) { say("%s %d", what, fd); }

static void fails(int set, int fd, const char *path, char **words) {
    say_result("exec", execv(path, words));
    say_event("after", set, 0);
    send_text(fd, "next");
    say_event("data", set, -1);
    hear(fd, 4);
    talk_by_set("this program", set, fd);
}

static void subject(int fd) {
    int set = set_to_inherit();
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x123456789abcdef};
    OK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    char *path = self();
    // A word is longer than any may be.
    static char much[1 << 18];
    memset(much, 'm', sizeof much - 1);
    fails(set, fd, path, (char *[]){path, much, NULL});
    pid_t child = vfork();
    if (child == 0) {
        execv(path, (char *[]){path, much, NULL});
        _exit(3);
    }
    say_child("vfork", child);
    fails(set, fd, path, (char *[]){path, much, NULL});
    fails(set, fd, "/nowhere", (char *[]){path, NULL});
}

static void partner(int fd) {
    for (int i = 0; i < 3; i++) {
        hear(fd, 4);
        send_text(fd, "data");
        listen_by_set(fd);
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
