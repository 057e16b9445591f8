// One end becomes a program without a dynamic linker, with bytes unread, while the other does nothing with the connection until it is told that this is
// done. Over TCP nobody has to wait for it.
#ifndef DUAL_SILENT_H
#define DUAL_SILENT_H

#include "talk.h"

enum { UNREAD = 50000 };

// What is to go on does so as `again`, and tells first.
SHARED void become_static(int fd) {
    settle(fd, 20000);
    char *program = getenv("DUAL_STATIC");
    OK(fcntl(CHANNEL, F_SETFD, 0));
    OK(execv(program, words_again(program, "the static program", fd)));
}

// The other end of that.
SHARED void be_silent(int fd) {
    send_filled(fd, UNREAD);
    await();
}

#endif
