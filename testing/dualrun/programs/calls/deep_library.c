// A library that is loaded with RTLD_DEEPBIND, so that it would find the C library's calls before ours, waits for a connection that the program uses.
#ifdef LIBRARY
#include <poll.h>

int wait_for(int fd, int timeout) {
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, timeout);
}
#else
#include "dual.h"
#include <dlfcn.h>

typedef int wait_for(int fd, int timeout);

// This file, compiled as a library.
static wait_for *loaded(void) {
    char path[] = "/tmp/dual-XXXXXX.so", command[512];
    OK(close(OK(mkstemps(path, 3))));
    snprintf(command, sizeof command, "cc -shared -fPIC -DLIBRARY -o %s %s", path, __FILE__);
    if (system(command) != 0) die(__LINE__, command);
    void *library = dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
    unlink(path);
    if (!library) die(__LINE__, dlerror());
    return (wait_for *)dlsym(library, "wait_for");
}

static void subject(void) {
    wait_for *wait = loaded();
    int fd = connected();
    for (int turn = 0; turn < 5; turn++) {
        tell_number(gettid());
        send_text(fd, "q");
        say("in the library: poll %d", wait(fd, 2000));
        hear(fd, 1);
    }
}

static void partner(void) {
    int fd = connected();
    for (int turn = 0; turn < 5; turn++) {
        int subject = await_number();
        hear(fd, 1);
        wait_asleep(subject);
        send_text(fd, "a");
    }
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
#endif
