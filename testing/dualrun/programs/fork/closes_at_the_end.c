// The process that forked closes the connection while it ends, when the streams of the C library are written out: its child still has it.
#include "dual.h"

static int connection;

static ssize_t at_the_end(void *cookie, const char *bytes, size_t length) {
    (void)cookie;
    (void)bytes;
    close(connection);
    return length;
}

static void subject(int fd) {
    connection = fd;
    int over[2];
    OK(pipe(over));
    pid_t family = OK(fork());
    if (family == 0) {
        close(over[0]);
        if (OK(fork()) == 0) {
            // The other is gone.
            await();
            send_text(fd, "question");
            hear(fd, 6);
            fflush(stdout);
            _exit(0);
        }
        FILE *last = fopencookie(NULL, "w", (cookie_io_functions_t){.write = at_the_end});
        fputc('.', last);
        exit(0);
    }
    close(fd);
    close(over[1]);
    say_child("child", family);
    tell();
    OK(read(over[0], buf, 1));
}

static void partner(int fd) {
    await();
    tell();
    hear(fd, 8);
    send_text(fd, "answer");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
