// Two streams over duplicates, one to read and one to write, as servers do.
#include "dual.h"

static void subject(int fd) {
    FILE *in = fdopen(fd, "r"), *out = fdopen(OK(dup(fd)), "w");
    setvbuf(out, NULL, _IOLBF, 1000);
    char line[100];
    for (int i = 0; i < 50; i++) {
        fprintf(out, "line %d\n", i);
        if (!fgets(line, sizeof line, in) || atoi(line + 4) != i) die(__LINE__, "fgets");
    }
    TRY(fclose(out));
    OK(shutdown(fileno(in), SHUT_WR));
    TRY(fgets(line, sizeof line, in) != NULL);
    say("%s", line);
    TRY(fgets(line, sizeof line, in) == NULL && feof(in));
    TRY(fclose(in));
}

static void partner(int fd) {
    FILE *in = fdopen(fd, "r"), *out = fdopen(OK(dup(fd)), "w");
    char line[100];
    int lines = 0;
    while (fgets(line, sizeof line, in)) {
        fprintf(out, "echo%s", line + 4);
        OK(fflush(out));
        lines++;
    }
    say("%d lines", lines);
    fputs("last line", out);
    OK(fclose(out));
    OK(fclose(in));
}

SUBJECT_AND_PARTNER(subject, partner)
