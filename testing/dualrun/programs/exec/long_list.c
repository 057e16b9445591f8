// execl, execle and execlp with few arguments, with some on the stack, and where they fail.
#include "dual.h"
#include <sys/wait.h>

static void run(int how) {
    char *none[] = {"WORD=environment", NULL};
    switch (how) {
    case 0: execl("/bin/true", "true", NULL); break;
    case 1: execl("/bin/sh", "sh", "-c", "exit $#", "0", "1", "2", "3", "4", "5", "6", "7", NULL); break;
    case 2: execl("/bin/sh", "sh", "-c", "exit 41", NULL); break;
    case 3: execlp("sh", "sh", "-c", "exit $#", "0", "1", "2", NULL); break;
    case 4: execle("/bin/sh", "sh", "-c", "[ $WORD = environment ]; exit $?", NULL, none); break;
    case 5: execle("/bin/sh", "sh", "-c", "[ $1$2$WORD = 12environment ]; exit $?", "0", "1", "2", NULL, none); break;
    }
    _exit(99);
}

static void say_status(int how, pid_t child) {
    int status;
    OK(waitpid(child, &status, 0));
    say("%d: %d", how, status);
}

static __attribute__((noinline)) void in_fork(int how) {
    pid_t child = fork();
    if (child == 0) run(how);
    say_status(how, child);
}

static __attribute__((noinline)) void in_vfork(int how) {
    pid_t child = vfork();
    if (child == 0) run(how);
    say_status(how, child);
}

static void subject(int fd) {
    for (int how = 0; how < 6; how++) {
        in_fork(how);
        in_vfork(how);
    }
    TRY(execl("/nowhere", "nowhere", "1", "2", "3", "4", "5", "6", "7", NULL));
    TRY(execle("/nowhere", "nowhere", NULL, environ));
    TRY(execlp("/nowhere", "nowhere", NULL));
    send_text(fd, "still there");
}

static void partner(int fd) {
    hear(fd, 11);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
