// A program that may have little address space (RLIMIT_AS) has room for its own memory beside many connections.
#include "dual.h"
#include <sys/mman.h>
#include <sys/resource.h>

enum { LIMIT = 256 << 20, OWN = 100 << 20, COUNT = 40 };

static int fds[COUNT];

static void open_all(void) {
    for (int i = 0; i < COUNT; i++) fds[i] = connected();
}

static void subject(void) {
    struct rlimit limit;
    OK(getrlimit(RLIMIT_AS, &limit));
    limit.rlim_cur = LIMIT;
    OK(setrlimit(RLIMIT_AS, &limit));
    open_all();
    void *own = mmap(NULL, OWN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say("has it: %d", own != MAP_FAILED);
    for (int i = 0; i < COUNT; i++) send_text(fds[i], "ok");
    meet();
}

static void partner(void) {
    open_all();
    for (int i = 0; i < COUNT; i++) hear(fds[i], 2);
    meet();
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
