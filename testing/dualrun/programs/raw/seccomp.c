// A program that binds itself to the system calls that it makes, and is killed for any other.
#include "dual.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define MAY(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void bind_itself(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        MAY(read), MAY(write), MAY(poll), MAY(close), MAY(exit_group), MAY(brk), MAY(mmap), MAY(munmap),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {.len = sizeof steps / sizeof *steps, .filter = steps};
    // Whether there is such a thing, as programs ask.
    TRY(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0));
    TRY(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL));
    TRY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    TRY(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
}

static void subject(int fd) {
    send_text(fd, "before");
    hear(fd, 6);
    bind_itself();
    for (int turn = 0; turn < 20; turn++) {
        struct pollfd entry = {.fd = fd, .events = POLLIN};
        if (write(fd, "question", 8) != 8) say("write: %d", errno);
        if (poll(&entry, 1, -1) != 1) say("poll: %d", errno);
        char answer[6];
        ssize_t got = read(fd, answer, sizeof answer);
        if (got != 6 || memcmp(answer, "answer", 6)) say("read: %ld", (long)got);
    }
    for (int i = 0; i < 100; i++) {
        memset(buf, i, 5000);
        for (ssize_t at = 0; at < 5000;) {
            ssize_t sent = write(fd, buf + at, 5000 - at);
            if (sent <= 0) say("write: %d", errno);
            at += sent;
        }
    }
    TRY(close(fd));
}

static void partner(int fd) {
    hear(fd, 6);
    send_text(fd, "before");
    for (int turn = 0; turn < 20; turn++) {
        if (recv_all(fd, buf, 8) != 8) say("nothing");
        send_text(fd, "answer");
    }
    for (int i = 0; i < 100; i++)
        if (recv_all(fd, buf, 5000) != 5000 || buf[0] != i || buf[4999] != i) say("other bytes at %d", i);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
