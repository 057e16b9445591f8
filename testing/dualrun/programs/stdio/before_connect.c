// A stream made of a socket before that is connected, and one of a socket that never is.
#include "dual.h"

static void subject(void) {
    struct sockaddr_storage address;
    socklen_t length = loopback(AF_INET, await_number(), &address);
    int fd = OK(socket(AF_INET, SOCK_STREAM, 0));
    FILE *stream = fdopen(fd, "r+");
    if (!stream) die(__LINE__, "fdopen");
    OK(connect(fd, (struct sockaddr *)&address, length));
    warm_up(fd);
    TRY(fileno(stream) == fd);
    fprintf(stream, "first line\n");
    TRY(fflush(stream));
    char line[100];
    TRY(fgets(line, sizeof line, stream) == line);
    say("%.*s", (int)strcspn(line, "\n"), line);
    TRY(fclose(stream));
    TRY(fcntl(fd, F_GETFD));
    int alone = OK(socket(AF_INET, SOCK_STREAM, 0));
    stream = fdopen(alone, "r+");
    TRY(fgetc(stream));
    TRY(ferror(stream) != 0);
    TRY(fclose(stream));
    TRY(fdopen(OK(socket(AF_INET, SOCK_STREAM, 0)), "?") == NULL);
}

static void partner(void) {
    int listener = listening(AF_INET);
    tell_number(port_of(listener));
    int fd = OK(accept(listener, NULL, NULL));
    OK(close(listener));
    warm_up(fd);
    hear(fd, 11);
    send_text(fd, "the answer\n");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
