// Children of a program whose other thread uses the connection all the time close it, and replace it, without waiting for that thread.
#include "dual.h"

static int connection;
static volatile int over;

static void *uses(void *with) {
    char byte;
    while (!over)
        if (recv(connection, &byte, 1, MSG_DONTWAIT) >= 0) die(__LINE__, "recv");
    return with;
}

static void subject(int fd) {
    connection = fd;
    int null = OK(open("/dev/null", O_RDWR));
    pthread_t thread = start(uses, NULL);
    for (int i = 0; i < 200; i++) {
        pid_t child = OK(fork());
        if (child == 0) {
            if (i % 2) OK(dup2(null, fd));
            OK(close(fd));
            _exit(0);
        }
        int status;
        while (waitpid(child, &status, 0) < 0)
            if (errno != EINTR) die(__LINE__, "waitpid");
        if (status != 0) die(__LINE__, "child");
    }
    over = 1;
    finish(thread);
    send_text(fd, "still here");
}

static void partner(int fd) {
    hear(fd, 10);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
