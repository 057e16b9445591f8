// Calls on a number that is no file, and on a file that is no socket, as natively.
#include "dual.h"

static void subject(int fd) {
    int file = OK(open("/dev/null", O_RDWR));
    int closed = OK(dup(fd));
    OK(close(closed));
    int none[] = {closed, -1, 100000};
    for (int i = 0; i < 3; i++) {
        TRY(recv(none[i], buf, 1, 0));
        TRY(send(none[i], buf, 1, 0));
        TRY(read(none[i], buf, 1));
        TRY(write(none[i], buf, 1));
        TRY(close(none[i]));
        TRY(shutdown(none[i], SHUT_WR));
        TRY(dup(none[i]));
        TRY(dup2(none[i], 50));
        TRY(fcntl(none[i], F_GETFL));
        TRY(ioctl(none[i], FIONREAD, buf));
        TRY(listen(none[i], 1));
        TRY(accept(none[i], NULL, NULL));
        TRY(getsockname(none[i], (void *)buf, &(socklen_t){16}));
    }
    TRY(recv(file, buf, 1, 0));
    TRY(send(file, buf, 1, 0));
    TRY(shutdown(file, SHUT_WR));
    TRY(accept(file, NULL, NULL));
    TRY(write(file, "x", 1));
    TRY(read(file, buf, 1));
    TRY(close(file));
    send_text(fd, "end");
}

static void partner(int fd) { hear(fd, 3); }

SUBJECT_AND_PARTNER(subject, partner)
