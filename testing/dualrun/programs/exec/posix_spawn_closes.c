// posix_spawn of a program that gets the connection as its input and output, and of which the other descriptors are closed: from a number on, or each that there is.
#include "talk.h"
#include <dirent.h>
#include <spawn.h>

enum { FIRST = TRANSCRIPT + 1 };

static void again(const char *what, int fd) {
    (void)fd;
    talk(what, 0, 1);
}

static void spawns(const posix_spawn_file_actions_t *actions, const char *what) {
    pid_t child;
    ZERO(posix_spawn(&child, self(), actions, NULL, words_again(self(), what, 0), environ));
    say_child(what, child);
}

static void subject(int fd) {
    OK(dup2(fd, 0));
    OK(dup2(fd, 1));
    OK(close(fd));
    posix_spawn_file_actions_t each, all;
    ZERO(posix_spawn_file_actions_init(&each));
    DIR *numbers = opendir("/proc/self/fd");
    for (struct dirent *number; (number = readdir(numbers)) != NULL;) {
        int open = atoi(number->d_name);
        if (open >= FIRST) ZERO(posix_spawn_file_actions_addclose(&each, open));
    }
    closedir(numbers);
    spawns(&each, "one with each closed");
    ZERO(posix_spawn_file_actions_destroy(&each));

    ZERO(posix_spawn_file_actions_init(&all));
    ZERO(posix_spawn_file_actions_addclosefrom_np(&all, FIRST));
    spawns(&all, "one with all closed");
    ZERO(posix_spawn_file_actions_destroy(&all));
    talk("the parent", 0, 1);
}

static void partner(int fd) {
    for (int i = 0; i < 3; i++) listen_to_talk(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
