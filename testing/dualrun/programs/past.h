// System calls by an instruction of the program's own, as no library sees them.
#ifndef PAST_H
#define PAST_H

#include "dual.h"
#include <sys/syscall.h>

SHARED long past(long number, long a, long b, long c) {
    long result;
#if defined(__x86_64__)
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
#else
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    result = x0;
#endif
    return result;
}

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
