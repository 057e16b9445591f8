// What programs with system calls by instructions of their own share.
#ifndef PAST_H
#define PAST_H

#include "dual.h"
#include "instruction.h"

// The partner's part: two connections more, each of which gets what the subject sends there, and answers.
SHARED void answer_at(int listener) {
    int fd = OK(accept(listener, NULL, NULL));
    hear(fd, 6);
    send_text(fd, "answer");
    recv_to_end(fd);
    OK(close(fd));
}

SHARED void ask(int fd) {
    send_text(fd, "to you");
    hear(fd, 6);
}

#endif
