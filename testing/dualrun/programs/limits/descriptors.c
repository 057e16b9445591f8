// The limit, the files that /proc shows, and the numbers that are handed out are as without us.
#include "dual.h"
#include <dirent.h>
#include <sys/resource.h>

static void count_files(const char *when) {
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) die(__LINE__, "opendir");
    int count = -1; // without the folder itself
    struct dirent *entry;
    while ((entry = readdir(folder))) count += entry->d_name[0] != '.';
    closedir(folder);
    say("%s: %d files", when, count);
}

static void end(void) {
    struct rlimit limit;
    OK(getrlimit(RLIMIT_NOFILE, &limit));
    say("limit %lu", (unsigned long)limit.rlim_cur);
    count_files("at first");
    int fds[3];
    for (int i = 0; i < 3; i++) fds[i] = connected();
    count_files("three connections");
    for (int i = 0; i < 3; i++) say("number %d", fds[i]);
    OK(close(fds[1]));
    count_files("one closed");
    int next = OK(dup(0));
    say("next number %d", next);
    meet();
    OK(close(fds[0]));
    OK(close(fds[2]));
    count_files("all closed");
}

SUBJECT_AND_PARTNER_UNCONNECTED(end, end)
