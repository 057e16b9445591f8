// setvbuf: unbuffered, by line, and a small buffer; what is written and when.
#include "dual.h"

static void subject(int fd) {
    FILE *out = fdopen(OK(dup(fd)), "w");
    TRY(setvbuf(out, NULL, _IONBF, 0));
    fputs("unbuffered", out);
    hear(fd, 1);
    OK(fclose(out));
    out = fdopen(OK(dup(fd)), "w");
    TRY(setvbuf(out, NULL, _IOLBF, 4096));
    fputs("held back ", out);
    fputs("until here\n", out);
    hear(fd, 1);
    OK(fclose(out));
    out = fdopen(OK(dup(fd)), "w");
    static char small[16];
    TRY(setvbuf(out, small, _IOFBF, sizeof small));
    for (int i = 0; i < 100; i++) fprintf(out, "%02d", i);
    OK(fclose(out));
    hear(fd, 1);
    FILE *in = fdopen(fd, "r");
    TRY(setvbuf(in, NULL, _IONBF, 0));
    TRY(fgetc(in));
    TRY(ungetc('z', in));
    TRY(fgetc(in));
    TRY(fread(buf, 1, 3, in));
    hear(fd, 3); // nothing was read ahead
}

static void partner(int fd) {
    hear(fd, 10);
    send_text(fd, "1");
    hear(fd, 21);
    send_text(fd, "2");
    hear(fd, 200);
    send_text(fd, "3abcdefg");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
