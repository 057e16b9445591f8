// posix_spawn with file actions that put the connection at 0 and 1, and close it.
#include "talk.h"
#include <spawn.h>

static void again(const char *what, int fd) {
    TRY(fcntl(fd, F_GETFD));
    talk(what, 0, 1);
}

static void subject(int fd) {
    posix_spawn_file_actions_t actions;
    ZERO(posix_spawn_file_actions_init(&actions));
    ZERO(posix_spawn_file_actions_adddup2(&actions, fd, 0));
    ZERO(posix_spawn_file_actions_adddup2(&actions, fd, 1));
    ZERO(posix_spawn_file_actions_addclose(&actions, fd));
    pid_t child;
    ZERO(posix_spawn(&child, self(), &actions, NULL, words_again(self(), "the spawned", fd), environ));
    say_child("child", child);
    ZERO(posix_spawnp(&child, self(), &actions, NULL, words_again(self(), "the spawned by name", fd), environ));
    say_child("child", child);
    say("%s", strerrorname_np(posix_spawn(&child, "/nowhere", NULL, NULL, words_again(self(), "", fd), environ)));
    talk("the parent", fd, fd);
}

static void partner(int fd) {
    for (int i = 0; i < 3; i++) listen_to_talk(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
