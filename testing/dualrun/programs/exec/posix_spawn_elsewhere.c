// posix_spawn of a relative path in another folder, where it is a static program; here it is this one.
#include "talk.h"
#include <spawn.h>

static void again(const char *what, int fd) { talk(what, fd, fd); }

static void subject(int fd) {
    char home[] = "/tmp/dualrun-XXXXXX";
    if (mkdtemp(home) == NULL) die(__LINE__, home);
    OK(chdir(home));
    OK(mkdir("there", 0755));
    OK(symlink(self(), "program"));
    OK(symlink(getenv("DUAL_STATIC"), "there/program"));
    char *program = (char *)"./program";
    posix_spawn_file_actions_t by_path, by_fd;
    ZERO(posix_spawn_file_actions_init(&by_path));
    ZERO(posix_spawn_file_actions_addchdir_np(&by_path, "there"));
    pid_t child;
    ZERO(posix_spawn(&child, program, &by_path, NULL, words_again(program, "by path", fd), environ));
    say_child("by path", child);
    int there = OK(open("there", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ZERO(posix_spawn_file_actions_init(&by_fd));
    ZERO(posix_spawn_file_actions_addfchdir_np(&by_fd, there));
    ZERO(posix_spawnp(&child, program, &by_fd, NULL, words_again(program, "by descriptor", fd), environ));
    say_child("by descriptor", child);
    OK(unlink("there/program"));
    OK(unlink("program"));
    OK(rmdir("there"));
    OK(chdir("/"));
    OK(rmdir(home));
    talk("the parent", fd, fd);
}

static void partner(int fd) {
    for (int i = 0; i < 3; i++) listen_to_talk(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
