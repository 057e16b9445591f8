// What C++ does: `std::cout` writes to the stream that `stdout` was when it was made. Such a program has a library for it, which is loaded here.
#include "dual.h"
#include <dlfcn.h>

static void subject(int fd) {
    FILE *out = stdout, *in = stdin;
    if (!dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL)) {
        say("there is no libstdc++.so.6: nothing is shown");
        return;
    }
    OK(dup2(fd, 1));
    fputs("std::cout", out);
    TRY(fflush(out));
    OK(dup2(fd, 0));
    TRY(fgets(buf, 100, in) == buf);
    say("%.*s", (int)strcspn(buf, "\n"), buf);
}

static void partner(int fd) {
    hear(fd, 9);
    send(fd, "std::cin\n", 9, MSG_NOSIGNAL);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
