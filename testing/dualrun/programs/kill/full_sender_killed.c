// The sender is killed while it waits for room. The receiver gets a beginning of what was sent and the end, and there is no error.
#include "dual.h"

static void subject(int fd) {
    pid_t sender = await_number();
    wait_asleep(sender);
    OK(kill(sender, SIGKILL));
    if (await_number() != -1) die(__LINE__, "it is still here");
    uint64_t at = 0;
    ssize_t got;
    while ((got = recv(fd, buf, 65536, 0)) > 0) {
        if (!as_filled(buf, got, at)) die(__LINE__, "not as sent");
        at += got;
    }
    say("some: %d, then %s", at > 0, got == 0 ? "end" : strerrorname_np(errno));
    int error = -1;
    OK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof error}));
    say("error %d", error);
    TRY(recv(fd, buf, 1, 0));
}

static void partner(int fd) {
    tell_number(getpid());
    for (uint64_t at = 0;; at += 10000) {
        fill(buf, 10000, at);
        OK(send_all(fd, buf, 10000));
    }
}

SUBJECT_AND_PARTNER(subject, partner)
