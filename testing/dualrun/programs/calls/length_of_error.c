// The result of a failed read as the length of the next call: none of the program's memory is sent, and none is written to.
#include "dual.h"
#include <sys/ioctl.h>
#include <sys/mman.h>

enum { MUCH = 8 << 20 };

static void subject(int fd) {
    char *much = mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // The kernel's checks, not the C library's for fortified programs.
    volatile size_t failed = -1;
    OK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
    settle(fd, 4);
    TRY(write(fd, much, failed));
    TRY((read)(fd, much, failed));
    TRY(write(fd, much, failed >> 1));
    say("written to: %d", much[0]);
    OK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK));
    hear(fd, 4);
    send_text(fd, "done");
}

static void partner(int fd) {
    send_text(fd, "data");
    hear(fd, 4);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
