// The same while a child has the connection too.
#include "jumps.h"

static void subject(int fd) {
    int over[2];
    OK(pipe(over));
    pid_t child = OK(fork());
    if (child == 0) {
        char end;
        OK(close(over[1]));
        OK(read(over[0], &end, 1));
        _exit(0);
    }
    jump_out_of_calls(fd);
    OK(close(over[1]));
    say_child("child", child);
}

SUBJECT_AND_PARTNER(subject, partner_of_jumps)
