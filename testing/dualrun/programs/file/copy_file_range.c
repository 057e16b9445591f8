// copy_file_range is for files.
#include "dual.h"

static void subject(int fd) {
    char path[] = "/tmp/dualrun-XXXXXX";
    int file = OK(mkstemp(path));
    OK(unlink(path));
    OK(write(file, "contents", 8));
    OK(lseek(file, 0, SEEK_SET));
    settle(fd, 4);
    TRY(copy_file_range(file, NULL, fd, NULL, 8, 0));
    TRY(copy_file_range(fd, NULL, file, NULL, 4, 0));
    TRY(copy_file_range(fd, NULL, fd, NULL, 4, 0));
    TRY(copy_file_range(-1, NULL, fd, NULL, 4, 0));
    hear(fd, 4);
    send_text(fd, "end");
}

static void partner(int fd) {
    send_text(fd, "data");
    hear(fd, 3);
}

SUBJECT_AND_PARTNER(subject, partner)
