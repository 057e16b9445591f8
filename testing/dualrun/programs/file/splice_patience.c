// Whether splice waits for the socket is for the socket to say, and SPLICE_F_NONBLOCK is about the pipe. Which end of the pipe it is matters.
#include "alarms.h"

static void subject(int fd) {
    int ends[2], empty[2];
    OK(pipe(ends));
    OK(pipe(empty));
    TRY(splice(fd, NULL, ends[0], NULL, 4, 0));
    TRY(splice(ends[1], NULL, fd, NULL, 4, 0));
    TRY(splice(empty[0], NULL, fd, NULL, 4, SPLICE_F_NONBLOCK));
    tell_number(gettid());
    TRY(splice(fd, NULL, ends[1], NULL, 4, SPLICE_F_NONBLOCK)); // nothing is there yet
    OK(write(ends[1], "and more", 8));
    tell_number(gettid());
    TRY(splice(fd, NULL, ends[1], NULL, 4, SPLICE_F_NONBLOCK));
    OK(fcntl(ends[1], F_SETFL, O_NONBLOCK));
    while (write(ends[1], buf, 4096) > 0) {}
    TRY(splice(fd, NULL, ends[1], NULL, 4, SPLICE_F_NONBLOCK)); // the pipe is full
    tell();
    OK(read(ends[0], buf, 16));
    say("%.16s", buf);
}

static void partner(int fd) {
    for (int i = 0; i < 2; i++) {
        wait_asleep(await_number());
        send_text(fd, "four");
    }
    await();
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
