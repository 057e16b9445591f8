// The kernel's own asynchronous input and output: it waits for a connection, reads from it and writes to it.
#include "dual.h"
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <time.h>

static void submit(aio_context_t context, const char *what, int fd, int operation, uint64_t memory, size_t length) {
    struct iocb block = {
        .aio_fildes = fd, .aio_lio_opcode = operation, .aio_buf = memory, .aio_nbytes = length};
    struct iocb *blocks[] = {&block};
    say("%s:", what);
    TRY(syscall(SYS_io_submit, context, 1L, blocks));
}

static void done(aio_context_t context) {
    struct io_event event = {0};
    struct timespec patience = {2, 0};
    TRY(syscall(SYS_io_getevents, context, 1L, 1L, &event, &patience));
    say("%lld", (long long)event.res);
}

static void subject(int fd) {
    aio_context_t context = 0;
    if (TRY(syscall(SYS_io_setup, 8L, &context)) < 0) return;
    submit(context, "wait", fd, IOCB_CMD_POLL, POLLIN, 0);
    send_text(fd, "go!");
    done(context);
    settle(fd, 5);
    submit(context, "read", fd, IOCB_CMD_PREAD, (uintptr_t)buf, 5);
    done(context);
    say("%.5s", buf);
    submit(context, "write", fd, IOCB_CMD_PWRITE, (uintptr_t) "written", 7);
    done(context);
    struct iocb *none[] = {NULL};
    TRY(syscall(SYS_io_submit, context, 1L, none));
    TRY(syscall(SYS_io_submit, context, 1L, NULL));
    hear(fd, 3);
    OK(syscall(SYS_io_destroy, context));
}

static void partner(int fd) {
    hear(fd, 3);
    send_text(fd, "hello");
    hear(fd, 7);
    send_text(fd, "end");
}

SUBJECT_AND_PARTNER(subject, partner)
