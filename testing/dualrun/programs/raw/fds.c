// syscall() for what makes and ends file numbers: dup, dup2, dup3, fcntl, close, close_range, accept4.
#include "dual.h"
#include <sys/syscall.h>

static void subject(int fd) {
    int twin = OK(syscall(SYS_dup, fd));
    send_text(twin, "dup ");
    TRY(syscall(SYS_close, twin));
    TRY(send(twin, "x", 1, 0));
    TRY(syscall(SYS_dup2, fd, 300L));
    send_text(300, "dup2 ");
    TRY(syscall(SYS_dup3, fd, 301L, (long)O_CLOEXEC));
    send_text(301, "dup3 ");
    TRY(syscall(SYS_fcntl, fd, (long)F_DUPFD, 302L));
    send_text(302, "fcntl ");
    TRY(syscall(SYS_close_range, 290L, 310L, 0L));
    TRY(send(302, "x", 1, 0));
    int number = fd;
    TRY(syscall(SYS_close, fd));
    int other = OK(open("/dev/zero", O_RDONLY));
    say("the same number: %d", other == number);
    TRY(recv(number, buf, 1, 0));
    TRY(read(number, buf, 1));
}

static void partner(int fd) {
    hear(fd, 20);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
