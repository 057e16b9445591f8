// A number that was a connection becomes a file, a pipe, another connection; what was known of it is forgotten.
#include "dual.h"

static void subject(void) {
    int fds[2], ends[2];
    connected_twice(fds);
    OK(pipe(ends));
    int number = fds[0];
    OK(close(number));
    int file = OK(open("/dev/zero", O_RDONLY)); // takes the number
    say("the same number: %d", file == number);
    TRY(read(number, buf, 10));
    TRY(recv(number, buf, 10, 0));
    OK(dup2(ends[0], number));
    OK(write(ends[1], "pipe", 4));
    TRY(read(number, buf, 10));
    say("%.4s", buf);
    OK(dup2(fds[1], number));
    hear(number, 4);
    send_text(number, "end");
}

static void partner(void) {
    int fds[2];
    connected_twice(fds);
    send_text(fds[1], "data");
    hear(fds[1], 3);
    recv_to_end(fds[0]);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
