// Each name of exec hands the connection on: execl, execle, execlp, execv, execve, execvp, execvpe, fexecve, execveat.
#include "talk.h"

enum { NAMES = 9 };

static void again(const char *what, int fd) { talk(what, fd, fd); }

static void subject(int fd) {
    for (int name = 0; name < NAMES; name++) {
        pid_t child = OK(fork());
        if (child == 0) {
            char what[32], number[16];
            snprintf(what, sizeof what, "name %d", name);
            snprintf(number, sizeof number, "%d", fd);
            char *path = self(), **words = words_again(path, what, fd);
            if (name == 0) execl(path, path, "again", what, number, (char *)NULL);
            if (name == 1) execle(path, path, "again", what, number, (char *)NULL, environ);
            if (name == 2) execlp(path, path, "again", what, number, (char *)NULL);
            if (name == 3) execv(path, words);
            if (name == 4) execve(path, words, environ);
            if (name == 5) execvp(path, words);
            if (name == 6) execvpe(path, words, environ);
            if (name == 7) fexecve(OK(open(path, O_RDONLY | O_CLOEXEC)), words, environ);
            if (name == 8) execveat(AT_FDCWD, path, words, environ, 0);
            die(__LINE__, what);
        }
        say_child("child", child);
    }
}

static void partner(int fd) {
    for (int name = 0; name < NAMES; name++) listen_to_talk(fd);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
