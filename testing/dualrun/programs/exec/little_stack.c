// Programs are started, and a file is sent, by threads that have little more stack than there must be.
#include "dual.h"
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/sendfile.h>
#include <sys/wait.h>

extern char **environ;
static char *words[] = {"true", NULL};
static int connection;

static long ended(pid_t child) {
    int status;
    OK(waitpid(child, &status, 0));
    return status;
}

static void *spawns(void *none) {
    (void)none;
    pid_t child;
    ZERO(posix_spawn(&child, "/bin/true", NULL, NULL, words, environ));
    return (void *)ended(child);
}

static void *runs(void *none) {
    (void)none;
    return (void *)(long)system("exit 0");
}

static void *opens(void *none) {
    (void)none;
    return (void *)(long)pclose(popen("exit 0", "r"));
}

static void *forks(void *none) {
    (void)none;
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/true", "true", NULL);
        _exit(99);
    }
    return (void *)ended(child);
}

static void *vforks(void *none) {
    (void)none;
    pid_t child = vfork();
    if (child == 0) {
        execlp("true", "true", NULL);
        _exit(99);
    }
    return (void *)ended(child);
}

static void *sends(void *none) {
    (void)none;
    int file = OK(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    off_t at = 1;
    long sent = sendfile(connection, file, &at, 3);
    OK(close(file));
    return (void *)sent;
}

// PTHREAD_STACK_MIN, and what a page and the tables of libraries are.
#define LITTLE (16384 + 4096)

static void in_thread(const char *what, void *(*begin)(void *)) {
    pthread_attr_t little;
    pthread_t thread;
    void *result;
    ZERO(pthread_attr_init(&little));
    ZERO(pthread_attr_setstacksize(&little, LITTLE));
    ZERO(pthread_create(&thread, &little, begin, NULL));
    ZERO(pthread_join(thread, &result));
    say("%s: %ld", what, (long)result);
}

static void subject(int fd) {
    connection = fd;
    in_thread("posix_spawn", spawns);
    in_thread("system", runs);
    in_thread("popen", opens);
    in_thread("fork and execl", forks);
    in_thread("vfork and execlp", vforks);
    in_thread("sendfile", sends);
    OK(fcntl(fd, F_SETFD, FD_CLOEXEC));
    in_thread("posix_spawn without it", spawns);
    hear(fd, 4);
}

static void partner(int fd) {
    hear(fd, 3);
    send_text(fd, "done");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
