// getline, getdelim, dprintf, vdprintf, putw-like binary records.
#include "dual.h"

static void subject(int fd) {
    TRY(dprintf(fd, "%s=%d\n", "answer", 42));
    TRY(dprintf(fd, "%0*d\n", 5000, 7));
    FILE *in = fdopen(fd, "r");
    char *line = NULL;
    size_t room = 0;
    TRY(getline(&line, &room, in));
    say("%.*s", (int)strcspn(line, "\n"), line);
    TRY(getline(&line, &room, in));
    say("%lx", digest(line, 5001));
    TRY(getdelim(&line, &room, ';', in));
    say("%s", line);
    TRY(getline(&line, &room, in));
    TRY(getline(&line, &room, in));
    TRY(feof(in) != 0);
    free(line);
    OK(fclose(in));
}

static void partner(int fd) {
    hear(fd, 10);
    if (recv_all(fd, buf, 5001) != 5001) die(__LINE__, "recv");
    say("%lx", digest(buf, 5001));
    send_text(fd, "first\n");
    memset(buf, 'l', 5000);
    buf[5000] = '\n';
    send_all(fd, buf, 5001);
    send_text(fd, "to the semicolon;and no newline");
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
