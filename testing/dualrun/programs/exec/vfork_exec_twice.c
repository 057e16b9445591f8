// One child of vfork after the other becomes a program that inherits the connection.
#include "talk.h"

static void again(const char *what, int fd) {
    talk(what, fd, fd);
}

static void run(const char *what, int fd) {
    char **words = words_again(self(), what, fd);
    pid_t child = vfork();
    if (child == 0) {
        execv(words[0], words);
        _exit(99);
    }
    say_child(what, child);
}

static void subject(int fd) {
    run("the first child", fd);
    run("the second child", fd);
    talk("the parent", fd, fd);
}

static void partner(int fd) {
    listen_to_talk(fd);
    listen_to_talk(fd);
    listen_to_talk(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
