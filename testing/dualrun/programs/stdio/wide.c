// Streams that `fdopen` makes for wide characters of another set, by `,ccs=`.
#include "dual.h"
#include <wchar.h>

static void subject(int fd) {
    FILE *out = fdopen(OK(dup(fd)), "w,ccs=UTF-8"), *in = fdopen(fd, "r,ccs=UTF-8");
    if (!out || !in) die(__LINE__, "fdopen");
    TRY(fwprintf(out, L"wide\n"));
    TRY(fclose(out));
    wchar_t line[20];
    TRY(fgetws(line, 20, in) == line);
    say("%zu characters", wcslen(line));
    TRY(fclose(in));
}

static void partner(int fd) {
    hear(fd, 5);
    send_text(fd, "and back\n");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
