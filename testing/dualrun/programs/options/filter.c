// SO_ATTACH_FILTER: one that drops everything, until it is detached. Then what was sent arrives, for TCP sends it again.
#include "dual.h"
#include <linux/filter.h>

static void subject(int fd) {
    struct sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    struct sock_fprog program = {1, nothing};
    TRY(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program));
    send_text(fd, "set");
    await();
    say_poll("sent to the filter", fd, POLLIN, 100);
    TRY(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &(int){0}, sizeof(int)));
    hear(fd, 7);
    send_text(fd, "heard");
}

static void partner(int fd) {
    hear(fd, 3);
    send_text(fd, "present");
    tell();
    hear(fd, 5);
}

SUBJECT_AND_PARTNER(subject, partner)
