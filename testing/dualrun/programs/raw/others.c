// syscall() with numbers that are none of ours goes through unchanged, errors too.
#include "dual.h"
#include <sys/syscall.h>

static void subject(int fd) {
    TRY(syscall(SYS_getpid) == getpid());
    TRY(syscall(SYS_gettid) == gettid());
    TRY(syscall(100000L));
    TRY(syscall(-1L));
    TRY(syscall(SYS_kill, (long)getpid(), 0L));
    TRY(syscall(SYS_getrandom, buf, 16L, 0L));
    void *memory = (void *)syscall(SYS_mmap, NULL, 4096L, 3L, 0x22L, -1L, 0L);
    say("memory: %d", memory != (void *)-1);
    TRY(syscall(SYS_munmap, memory, 4096L));
    TRY(syscall(SYS_openat, -100L, "/nowhere", 0L, 0L));
    send_text(fd, "end");
}

static void partner(int fd) { hear(fd, 3); }

SUBJECT_AND_PARTNER(subject, partner)
