// A connection in shared memory goes to another program, or a connection of the kernel's comes to shared memory, and the kernel refuses the n-th system
// call on the way, for every n. Whatever comes of it, no byte is wrong, and none is missing without an error.
//
//   refused stranger|followed|passed      another program of the end that connects      prints: refused N moved N failed N
//   refused connected|accepted            the end that is upgraded
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loopback.h"
#include "rights.h"

#define OK(call) ({ long ok_ = (call); if (ok_ < 0) { perror(#call); exit(1); } ok_; })

enum { TURNS = 60, BEFORE = 2000, UNREAD = 3000, AFTER = 4000, RUN_FD = 700, CALLS_MOST = 150, PATIENCE_S = 30 };
static struct {
    volatile int ready, go, moved, told, wrong;
    volatile uint64_t sent[2];
} *run;
static unsigned char buffer[8192];
static int is_upgraded;

static unsigned char byte_at(uint64_t place, int end) { return (place * 2654435761u + end * 40503u) >> 11; }

// The call itself was refused, which the program is told without us, too: it asks again. What comes between must not make it forget that.
static int is_refused(void) { return is_upgraded && (errno == ENOMEM || errno == EPERM); }

static int is_told(void) { return errno == ECONNRESET || errno == EPIPE || errno == ENOTCONN; }

static void die(const char *what) {
    fprintf(stderr, "refused: %s: %s\n", what, strerror(errno));
    run->wrong = 1;
    _exit(1);
}

static int sends(int fd, int end, uint64_t count) {
    while (count > 0) {
        uint64_t n = count < sizeof buffer ? count : sizeof buffer;
        for (uint64_t i = 0; i < n; i++) buffer[i] = byte_at(run->sent[end] + i, end);
        ssize_t sent = send(fd, buffer, n, MSG_NOSIGNAL);
        if (sent < 0 && is_refused()) continue;
        if (sent < 0 && is_told()) return run->told = 1, 0;
        if (sent < 0) die("send");
        run->sent[end] += sent, count -= sent;
    }
    return 1;
}

// Up to `count` bytes of the other end, of which `*place` have come before; less at the end.
static int receives(int fd, int end, uint64_t *place, uint64_t count) {
    for (uint64_t until = *place + count; *place < until;) {
        uint64_t n = until - *place < sizeof buffer ? until - *place : sizeof buffer;
        ssize_t got = recv(fd, buffer, n, 0);
        if (got < 0 && is_refused()) continue;
        if (got < 0 && is_told()) return run->told = 1, 0;
        if (got < 0) die("recv");
        if (got == 0) {
            if (*place < run->sent[!end]) errno = 0, die("the end came too early");
            return 0;
        }
        for (ssize_t i = 0; i < got; i++)
            if (buffer[i] != byte_at(*place + i, !end)) errno = 0, die("a wrong byte");
        *place += got;
    }
    return 1;
}

// What is left to do for who has the connection in the end.
static void goes_on(int fd) {
    uint64_t place = TURNS + BEFORE;
    // Here the way ends.
    getppid();
    run->moved++;
    if (receives(fd, 0, &place, UNREAD)) sends(fd, 0, AFTER);
    shutdown(fd, SHUT_WR);
    receives(fd, 0, &place, 1);
    _exit(0);
}

static void begins(int is_traced) {
    if (!is_traced) return;
    run->ready = 1;
    while (!run->go) {}
}

static void become(int fd, int over, int with_us) {
    char numbers[2][16];
    snprintf(numbers[0], 16, "%d", fd);
    snprintf(numbers[1], 16, "%d", over);
    if (!with_us) unsetenv("LD_PRELOAD");
    char *words[] = {"refused", "again", numbers[0], numbers[1], NULL};
    execv("/proc/self/exe", words);
}

static void mover(struct sockaddr_in *address, const char *way) {
    int over[2] = {-1, -1}, is_passed = strcmp(way, "passed") == 0;
    if (is_passed) {
        OK(socketpair(AF_UNIX, SOCK_STREAM, 0, over));
        if (OK(fork()) == 0) {
            OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
            close(over[0]);
            become(-1, over[1], 0);
        }
        close(over[1]);
    }
    int fd = connect_to(address);
    uint64_t place = 0;
    if (is_upgraded) begins(strcmp(way, "connected") == 0);
    for (int n = 0; n < TURNS; n++)
        if (!sends(fd, 0, 1) || !receives(fd, 0, &place, 1)) _exit(0);
    if (!sends(fd, 0, BEFORE) || !receives(fd, 0, &place, BEFORE)) _exit(0);
    if (is_upgraded) goes_on(fd);
    begins(1);
    if (is_passed) {
        if (pass(over[0], fd) < 0) goes_on(fd);
        close(fd);
        close(over[0]);
        getppid();
        // Whoever has it now ends as it does.
        wait(NULL);
        _exit(0);
    }
    become(fd, -1, strcmp(way, "followed") == 0);
    // The kernel refused that.
    goes_on(fd);
}

static void partner(int listener, const char *way) {
    int fd = OK(accept(listener, NULL, NULL));
    uint64_t place = 0;
    begins(strcmp(way, "accepted") == 0);
    for (int n = 0; n < TURNS; n++) receives(fd, 1, &place, 1), sends(fd, 1, 1);
    sends(fd, 1, BEFORE + UNREAD);
    // So far goes the way of this end.
    getppid();
    while (receives(fd, 1, &place, 1)) {}
    _exit(0);
}

// ---- the kernel

// Those that end something cannot fail so that it goes on, some never do, and what waits is asked again.
static int may_fail(long call) {
    switch (call) {
    case SYS_close: case SYS_munmap: case SYS_exit: case SYS_exit_group: case SYS_rt_sigreturn: case SYS_futex: case SYS_sched_yield:
    case SYS_clock_nanosleep: case SYS_pause: case SYS_rt_sigprocmask: case SYS_gettid:
    case SYS_getpid: case SYS_getuid: case SYS_geteuid: case SYS_getgid: case SYS_getegid: return 0;
    default: return 1;
    }
}

static int opens_descriptors(pid_t pid, unsigned long at) {
    char path[16] = {0};
    struct iovec here = {path, sizeof path - 1}, there = {(void *)at, sizeof path - 1};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) > 0 && strncmp(path, "/proc/self/fd", 13) == 0;
}

// Fails the `nth` call of `pid` on the way, once; 0 if there are not so many.
static int refuse(pid_t pid, int nth, int is_followed) {
    int status, counts = 1, seen = 0, fails = 0;
    OK(ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC));
    OK(ptrace(PTRACE_INTERRUPT, pid, 0, 0));
    for (;;) {
        if (OK(waitpid(pid, &status, __WALL)) != pid || WIFEXITED(status) || WIFSIGNALED(status)) return fails;
        int signal = WSTOPSIG(status), event = status >> 16;
        if (event == PTRACE_EVENT_EXEC) {
            counts = 0;
            if (!is_followed) break;
        }
        struct __ptrace_syscall_info info;
        if (signal == (SIGTRAP | 0x80) && ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) > 0) {
            struct user_regs_struct registers;
            OK(ptrace(PTRACE_GETREGS, pid, 0, &registers));
            if (info.op == PTRACE_SYSCALL_INFO_EXIT && fails) {
                registers.rax = nth % 2 ? -ENOMEM : -EPERM;
                OK(ptrace(PTRACE_SETREGS, pid, 0, &registers));
                break;
            }
            if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
                long call = info.entry.nr;
                // The next program looks for what it inherits.
                if (!counts && call == SYS_openat && opens_descriptors(pid, info.entry.args[1])) counts = 1;
                if (call == SYS_getppid) break;
                if (counts && may_fail(call) && ++seen == nth) {
                    fails = 1;
                    registers.orig_rax = -1;
                    OK(ptrace(PTRACE_SETREGS, pid, 0, &registers));
                }
            }
            signal = 0;
        } else if (event) {
            signal = 0;
        }
        run->go = 1;
        if (ptrace(PTRACE_SYSCALL, pid, 0, signal) < 0) return fails;
    }
    ptrace(PTRACE_DETACH, pid, 0, 0);
    return fails;
}

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "again") == 0) {
        run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED, RUN_FD, 0);
        int over = atoi(argv[3]), fd = over < 0 ? atoi(argv[2]) : take(over);
        if (fd < 0) return 0;
        goes_on(fd);
    }
    if (argc != 2) return 2;
    int traced = strcmp(argv[1], "accepted") == 0;
    is_upgraded = traced || strcmp(argv[1], "connected") == 0;
    int memory = OK(memfd_create("refused", 0));
    OK(ftruncate(memory, sizeof *run));
    OK(dup2(memory, RUN_FD));
    run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED, RUN_FD, 0);
    int nth = 1, told = 0, moved = 0, refused = 1;
    for (; refused && nth <= CALLS_MOST; nth++) {
        memset(run, 0, sizeof *run);
        struct sockaddr_in address;
        int listener = listen_on_loopback(&address, 1);
        pid_t pids[2];
        for (int end = 0; end < 2; end++) {
            pids[end] = OK(fork());
            if (pids[end] == 0) {
                OK(setpgid(0, 0));
                OK(prctl(PR_SET_PDEATHSIG, SIGKILL));
                end ? partner(listener, argv[1]) : mover(&address, argv[1]);
            }
            setpgid(pids[end], pids[end]);
        }
        close(listener);
        while (!run->ready && !run->wrong) sched_yield();
        refused = refuse(pids[traced], nth, strcmp(argv[1], "followed") == 0);
        uint64_t begun = now_ms();
        for (int end = 0; end < 2; end++) {
            int status = 0;
            while (waitpid(pids[end], &status, WNOHANG) == 0) {
                if (now_ms() - begun > PATIENCE_S * 1000) {
                    fprintf(stderr, "refused: nothing moves\n");
                    run->wrong = 1;
                    kill(-pids[end], SIGKILL);
                }
                usleep(200);
            }
            if (run->wrong || WIFSIGNALED(status)) {
                fprintf(stderr, "refused: %s, call %d, end %d: status %x\n", argv[1], nth, end, status);
                kill(-pids[1], SIGKILL);
                return 1;
            }
        }
        told += run->told, moved += run->moved > 0;
        if (getenv("REFUSED_SAYS")) fprintf(stderr, "%d: moved %d told %d in %lu ms\n", nth, run->moved, run->told, (unsigned long)(now_ms() - begun));
    }
    printf("refused %d moved %d failed %d\n", nth - 2, moved, told);
    return 0;
}
