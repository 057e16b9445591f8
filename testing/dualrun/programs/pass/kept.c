// The connection goes to another process, preloaded or not, and this one keeps it: they take turns.
#include "passing.h"
#include "talk.h"

static void again(const char *what, int over) {
    int fd = take(over);
    for (int i = 0; i < 3; i++) {
        OK(read(over, buf, 1));
        talk(what, fd, fd);
        OK(write(over, "", 1));
    }
}

static void subject(int fd) {
    for (int stranger = 0; stranger < 2; stranger++) {
        int over[2];
        OK(socketpair(AF_UNIX, SOCK_STREAM, 0, over));
        if (stranger) OK(unsetenv("LD_PRELOAD"));
        pid_t child = OK(fork());
        if (child == 0) {
            OK(close(fd));
            OK(execv(self(), words_again(self(), stranger ? "the stranger" : "the other process", over[1])));
        }
        pass(over[0], fd);
        for (int i = 0; i < 3; i++) {
            talk("this process", fd, fd);
            OK(write(over[0], "", 1));
            OK(read(over[0], buf, 1));
        }
        say_child("child", child);
    }
}

static void partner(int fd) {
    for (int i = 0; i < 12; i++) listen_to_talk(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
