// After the end of writing sendfile and splice raise SIGPIPE, too.
#include "dual.h"
#include <sys/sendfile.h>

static volatile sig_atomic_t raised;

static void note(int number) { (void)number; raised++; }

static void subject(int fd) {
    char path[] = "/tmp/dualrun-XXXXXX";
    int file = OK(mkstemp(path));
    OK(unlink(path));
    OK(write(file, "0123456789", 10));
    int ends[2];
    OK(pipe(ends));
    OK(write(ends[1], "0123456789", 10));
    signal(SIGPIPE, note);
    send_text(fd, "last");
    OK(shutdown(fd, SHUT_WR));
    off_t at = 0;
    TRY(sendfile(fd, file, &at, 10));
    say("raised %d, offset %ld", (int)raised, (long)at);
    TRY(splice(ends[0], NULL, fd, NULL, 10, 0));
    say("raised %d", (int)raised);
    await();
}

static void partner(int fd) {
    recv_to_end(fd);
    tell();
}

SUBJECT_AND_PARTNER(subject, partner)
