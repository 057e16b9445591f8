// select over a connection, a pipe, an eventfd and a file; what it leaves in the sets and in the time.
#include "dual.h"
#include <sys/eventfd.h>
#include <sys/select.h>

static void subject(int fd) {
    int ends[2];
    OK(pipe(ends));
    int event = OK(eventfd(0, 0)), file = OK(open("/proc/self/exe", O_RDONLY));
    for (int round = 0; round < 4; round++) {
        fd_set in, out, except;
        FD_ZERO(&in);
        FD_ZERO(&out);
        FD_ZERO(&except);
        FD_SET(fd, &in);
        FD_SET(ends[0], &in);
        FD_SET(event, &in);
        if (round != 1) FD_SET(file, &in);
        if (round != 1) FD_SET(fd, &out);
        FD_SET(fd, &except);
        if (round == 1) meet();
        if (round == 2) OK(write(ends[1], "x", 1));
        if (round == 3) hear(fd, 4);
        struct timeval zero = {0, 0};
        int most = file > event ? file : event;
        int count = select(most + 1, &in, &out, &except, round == 1 ? NULL : &zero);
        say("round %d: %d, in: connection %d pipe %d event %d file %d, out %d, except %d", round, count,
            FD_ISSET(fd, &in) != 0, FD_ISSET(ends[0], &in) != 0, FD_ISSET(event, &in) != 0, FD_ISSET(file, &in) != 0,
            FD_ISSET(fd, &out) != 0, FD_ISSET(fd, &except) != 0);
    }
    fd_set in;
    FD_ZERO(&in);
    FD_SET(fd, &in);
    struct timeval little = {0, 10000};
    TRY(select(fd + 1, &in, NULL, NULL, &little));
    say("left %d %d, set %d", (int)little.tv_sec, (int)little.tv_usec, FD_ISSET(fd, &in) != 0);
    TRY(select(0, NULL, NULL, NULL, &little));
    FD_SET(800, &in);
    TRY(select(801, &in, NULL, NULL, &little));
    FD_ZERO(&in);
    FD_SET(fd, &in);
    TRY(select(fd, &in, NULL, NULL, &little)); // one too few: not looked at
    TRY(select(-1, &in, NULL, NULL, &little));
    little.tv_sec = -1;
    TRY(select(fd + 1, &in, NULL, NULL, &little));
}

static void partner(int fd) {
    meet();
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
