// Becomes, or starts, another program: launcher HOW PROGRAM
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int end_with(pid_t pid) {
    int status;
    return waitpid(pid, &status, 0) == pid ? status : 1;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const char *how = argv[1], *path = argv[2], *name = strrchr(path, '/') + 1;
    char *words[] = {argv[2], NULL};
    pid_t pid;
    if (strcmp(how, "execve") == 0) execve(path, words, environ);
    if (strcmp(how, "execv") == 0) execv(path, words);
    if (strcmp(how, "execvp") == 0) execvp(name, words);
    if (strcmp(how, "execl") == 0) execl(path, path, (char *)NULL);
    if (strcmp(how, "execle") == 0) execle(path, path, (char *)NULL, environ);
    if (strcmp(how, "fexecve") == 0) fexecve(open(path, O_RDONLY | O_CLOEXEC), words, environ);
    if (strcmp(how, "syscall") == 0) syscall(SYS_execve, path, words, environ);
    if (strcmp(how, "vfork") == 0) {
        if ((pid = vfork()) == 0) {
            execv(path, words);
            _exit(1);
        }
        // The variable is gone for the child only.
        return end_with(pid) || getenv("LD_PRELOAD") == NULL;
    }
    if (strcmp(how, "posix_spawn") == 0) return posix_spawn(&pid, path, NULL, NULL, words, environ) || end_with(pid);
    if (strcmp(how, "posix_spawnp") == 0) return posix_spawnp(&pid, name, NULL, NULL, words, environ) || end_with(pid);
    perror(how);
    return 1;
}
