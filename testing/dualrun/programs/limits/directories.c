// The files that /proc/self/fd shows, by each way of reading a directory.
#include "dual.h"
#include <dirent.h>
#include <sys/syscall.h>
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int no_dots(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static void scanned(const char *way, int count, struct dirent **list) {
    say("%s: %d", way, count);
    for (int i = 0; i < count; i++) {
        say("%s", list[i]->d_name);
        free(list[i]);
    }
    free(list);
}

// Little room, so that several calls are needed.
static void by_entries(const char *way, int by_number) {
    char room[320] __attribute__((aligned(8)));
    int folder = OK(open("/proc/self/fd", O_RDONLY | O_DIRECTORY)), count = 0;
    for (;;) {
        long got = OK(by_number ? syscall(SYS_getdents64, (long)folder, room, sizeof room)
                                : getdents64(folder, room, sizeof room));
        if (got == 0) break;
        for (long at = 0; at < got; at += ((struct dirent64 *)(room + at))->d_reclen)
            count += ((struct dirent64 *)(room + at))->d_name[0] != '.';
    }
    OK(close(folder));
    say("%s: %d", way, count);
}

static void end(void) {
    for (int i = 0; i < 3; i++) connected();
    struct dirent **list, entry, *next;
    int count = OK(scandir("/proc/self/fd", &list, no_dots, alphasort));
    scanned("scandir", count, list);
    int proc = OK(open("/proc/self", O_PATH | O_DIRECTORY));
    count = OK(scandirat(proc, "fdinfo", &list, no_dots, alphasort));
    scanned("scandirat", count, list);
    OK(close(proc));
    by_entries("getdents64", 0);
    by_entries("its number", 1);
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) die(__LINE__, "opendir");
    for (count = 0; readdir_r(folder, &entry, &next) == 0 && next;) count += no_dots(&entry);
    closedir(folder);
    say("readdir_r: %d", count);
    meet();
}

SUBJECT_AND_PARTNER_UNCONNECTED(end, end)
