// Memory that is not there: EFAULT, and the stream goes on.
#include "dual.h"
#include <sys/sendfile.h>

static void subject(int fd) {
    void *nowhere = (void *)(opaque(0) + 16);
    settle(fd, 4);
    TRY(recv(fd, nowhere, 4, 0));
    TRY(read(fd, nowhere, 4));
    TRY(send(fd, nowhere, 4, 0));
    TRY(write(fd, nowhere, 4));
    struct iovec bad[2] = {{nowhere, 4}, {buf, 4}};
    TRY(writev(fd, bad, 2));
    TRY(readv(fd, bad, 2));
    struct iovec later[3] = {{buf, 4}, {NULL, 0}, {nowhere, 4}};
    TRY(writev(fd, later, 3));
    TRY(sendfile(fd, STDIN_FILENO, nowhere, 4));
    TRY(sendfile(-1, STDIN_FILENO, nowhere, 4));
    TRY(sendmsg(fd, nowhere, 0));
    TRY(recvmsg(fd, nowhere, 0));
    TRY(poll(nowhere, 1, 0));
    hear(fd, 4);
    send_text(fd, "done");
}

static void partner(int fd) {
    send_text(fd, "data");
    hear(fd, 4);
}

SUBJECT_AND_PARTNER(subject, partner)
