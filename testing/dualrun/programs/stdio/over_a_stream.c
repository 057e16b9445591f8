// A connection is put at the number of a stream that is open: the stream goes on with it.
#include "dual.h"

static void subject(int fd) {
    FILE *out = fopen("/dev/null", "w"), *in = fopen("/dev/null", "r"), *other = fopen("/dev/null", "w");
    if (!out || !in || !other) die(__LINE__, "fopen");
    char line[100];
    OK(dup2(fd, fileno(out)));
    fputs("by dup2\n", out);
    TRY(fflush(out));
    OK(dup3(fd, fileno(other), O_CLOEXEC));
    fputs("by dup3\n", other);
    TRY(fflush(other));
    TRY(dup2(fd, 600)); // no stream's
    OK(dup2(600, fileno(in)));
    OK(close(600));
    TRY(fgets(line, sizeof line, in) == line);
    say("%.*s", (int)strcspn(line, "\n"), line);
    TRY(fclose(out));
    TRY(fclose(other));
    TRY(fclose(in));
    send_text(fd, "last");
}

static void partner(int fd) {
    hear(fd, 8);
    hear(fd, 8);
    send_text(fd, "an answer\n");
    hear(fd, 4);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
