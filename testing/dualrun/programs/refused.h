// A filter that answers a system call with an error, as the one under which a container's programs are started: no library sees it being set.
#ifndef REFUSED_H
#define REFUSED_H

#include "instruction.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static void refuse(int number, int errnum) {
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | errnum),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof lines / sizeof *lines, lines};
    OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (past(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&filter)) die(__LINE__, "seccomp");
}

#endif
