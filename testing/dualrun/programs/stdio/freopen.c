// freopen, fileno and fclose give the number back, and the next file takes it.
#include "dual.h"

static void subject(int fd) {
    int twin = OK(dup(fd));
    FILE *stream = fdopen(twin, "w");
    fputs("bye", stream);
    TRY(freopen("/dev/null", "w", stream) == stream); // closes the twin, after writing
    TRY(fileno(stream) == twin);
    TRY(fclose(stream));
    TRY(fcntl(twin, F_GETFD));
    TRY(fdopen(800, "r") == NULL ? -1 : 0);
    TRY(fdopen(fd, "bad mode") == NULL ? -1 : 0);
    hear(fd, 4);
}

static void partner(int fd) {
    hear(fd, 3);
    send_text(fd, "data");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
