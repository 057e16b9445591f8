// One connection between two processes, one of which comes to have too little in the middle of an upgrade. Echoes before and after, byte by byte.
//
//   scarce WHAT AMOUNT EXCHANGES     prints "up PID" once all is echoed, and waits for the end of its input
//   WHAT: files (AMOUNT more descriptors), memory (AMOUNT more KiB), size (files of AMOUNT KiB), memfd (refused), none; from EXCHANGES on
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loopback.h"

enum { ROUNDS = 200, MOST = 20000 };
static unsigned char out[MOST], back[MOST];

static void die(const char *what) {
    fprintf(stderr, "scarce: %s: %s\n", what, strerror(errno));
    _exit(3);
}
#define OK(call)                                                                                                       \
    ({                                                                                                                 \
        long result_ = (long)(call);                                                                                   \
        if (result_ == -1) die(#call);                                                                                 \
        result_;                                                                                                       \
    })

static unsigned long used_kib(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL || fscanf(file, "%lu", &pages) != 1) die("statm");
    fclose(file);
    return pages * 4;
}

static void limit(int which, unsigned long value) {
    struct rlimit limit;
    OK(getrlimit(which, &limit));
    limit.rlim_cur = value;
    OK(setrlimit(which, &limit));
}

static void refuse_memfd(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    // Past the C library, from which sovia would hear of it and stand aside.
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_prctl), "D"(PR_SET_SECCOMP), "S"(SECCOMP_MODE_FILTER), "d"(&filter)
                     : "rcx", "r11", "memory");
    if (result != 0) die("the filter");
}

static void become_scarce(const char *what, unsigned long amount) {
    if (strcmp(what, "files") == 0) {
        int next = OK(dup(0));
        close(next);
        limit(RLIMIT_NOFILE, next + amount);
    } else if (strcmp(what, "memory") == 0) {
        limit(RLIMIT_AS, (used_kib() + amount) << 10);
    } else if (strcmp(what, "size") == 0) {
        limit(RLIMIT_FSIZE, amount << 10);
    } else if (strcmp(what, "memfd") == 0) {
        refuse_memfd();
    }
}

static void all(int fd, unsigned char *bytes, size_t n, int sends) {
    for (size_t done = 0; done < n;) {
        ssize_t now = sends ? send(fd, bytes + done, n - done, MSG_NOSIGNAL) : recv(fd, bytes + done, n - done, 0);
        if (now == 0) die("an end");
        if (now < 0) die(sends ? "send" : "recv");
        done += now;
    }
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    struct sockaddr_in address;
    int listener = listen_on_loopback(&address, 1);
    pid_t child = OK(fork());
    if (child == 0) {
        OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
        int fd = OK(accept(listener, NULL, NULL));
        ssize_t got;
        // Either end may be the one who makes the memory.
        if (strcmp(argv[1], "size") == 0 || strcmp(argv[1], "memfd") == 0) become_scarce(argv[1], strtoul(argv[2], NULL, 0));
        while ((got = recv(fd, back, MOST, 0)) > 0) all(fd, back, got, 1);
        _exit(got == 0 ? 0 : 4);
    }
    close(listener);
    int fd = connect_to(&address), from = atoi(argv[3]);
    for (int round = 0; round < ROUNDS; round++) {
        if (round == from) become_scarce(argv[1], strtoul(argv[2], NULL, 0));
        size_t n = 1 + (round * 7919u) % MOST;
        for (size_t i = 0; i < n; i++) out[i] = (round * 31 + i * 7 + (i >> 8)) & 0xff;
        all(fd, out, n, 1);
        all(fd, back, n, 0);
        if (memcmp(out, back, n) != 0) die("not what was sent");
    }
    // No stdio here: it may find no memory.
    char line[32];
    int length = snprintf(line, sizeof line, "up %d\n", getpid());
    OK(write(1, line, length));
    OK(read(0, line, 1));
    OK(shutdown(fd, SHUT_WR));
    if (recv(fd, back, 1, 0) != 0) die("no end");
    int how;
    OK(waitpid(child, &how, 0));
    return how != 0;
}
