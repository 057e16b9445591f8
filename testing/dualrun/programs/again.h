// Programs that go on in another program: which is themselves, started with other words.
#ifndef DUAL_AGAIN_H
#define DUAL_AGAIN_H

#include "dual.h"

extern char **environ;

// What runs when the program is started as `PROGRAM again WHAT FD`.
static void again(const char *what, int fd);

SHARED char *self(void) {
    static char path[4096];
    ssize_t length = OK(readlink("/proc/self/exe", path, sizeof path - 1));
    path[length] = 0;
    return path;
}

// The words for it. One at a time.
SHARED char **words_again(char *program, const char *what, int fd) {
    static char number[16];
    static char *words[5];
    snprintf(number, sizeof number, "%d", fd);
    words[0] = program;
    words[1] = (char *)"again";
    words[2] = (char *)what;
    words[3] = number;
    return words;
}

#define SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)                                                                \
    int main(int argc, char **argv) {                                                                                  \
        if (argc == 4 && strcmp(argv[1], "again") == 0) {                                                              \
            again(argv[2], atoi(argv[3]));                                                                             \
            return 0;                                                                                                  \
        }                                                                                                              \
        begin(argc, argv);                                                                                             \
        int fd = connected();                                                                                          \
        if (is_subject) subject(fd);                                                                                   \
        else partner(fd);                                                                                              \
        return 0;                                                                                                      \
    }

#endif
