// dup2 to any number, whoever has a descriptor there without the program's knowing it.
#include "dual.h"
#include <dirent.h>

static void subject(int fd) {
    send_text(fd, "before");
    hear(fd, 3);
    int numbers[256], count = 0, refused = 0;
    DIR *open = opendir("/proc/self/fd");
    for (struct dirent *number; (number = readdir(open)) != NULL && count < 256;) {
        numbers[count] = atoi(number->d_name);
        count += numbers[count] > 99 && numbers[count] != CHANNEL && numbers[count] != TRANSCRIPT;
    }
    closedir(open);
    for (int i = 0; i < count; i++) {
        refused += dup2(0, numbers[i]) < 0;
    }
    say("%d refused", refused);
    for (int i = 0; i < count; i++) close(numbers[i]);
    send_text(fd, "after");
    hear(fd, 3);
}

static void partner(int fd) {
    hear(fd, 6);
    send_text(fd, "yes");
    hear(fd, 5);
    send_text(fd, "yes");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
