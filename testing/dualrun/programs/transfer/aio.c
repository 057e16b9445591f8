// POSIX's asynchronous calls, which threads of the C library carry out.
#include "dual.h"
#include <aio.h>

static void posted(int (*call)(struct aiocb *), const char *name, int fd, char *data, size_t length) {
    struct aiocb block = {.aio_fildes = fd, .aio_buf = data, .aio_nbytes = length};
    const struct aiocb *list[] = {&block};
    OK(call(&block));
    while (aio_suspend(list, 1, NULL) < 0) {}
    say("%s: %s, %zd", name, strerrorname_np(aio_error(&block)), aio_return(&block));
}

static void subject(int fd) {
    hear(fd, 4);
    posted(aio_read, "aio_read", fd, buf, 5);
    say("%.5s", buf);
    strcpy(buf, "written");
    posted(aio_write, "aio_write", fd, buf, 7);
    send_text(fd, "as ever");
    hear(fd, 4);
}

static void partner(int fd) {
    send_text(fd, "four");
    send_text(fd, "fives");
    hear(fd, 14);
    send_text(fd, "last");
}

SUBJECT_AND_PARTNER(subject, partner)
