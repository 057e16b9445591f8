// A stream over a connection: fgets, fprintf, fread, fwrite, fflush, feof, fclose.
#include "dual.h"

static void subject(int fd) {
    FILE *stream = fdopen(fd, "r+");
    if (!stream) die(__LINE__, "fdopen");
    TRY(fileno(stream) == fd);
    TRY(fprintf(stream, "EHLO %s %d\r\n", "example", 42));
    TRY(fflush(stream));
    char line[100];
    while (fgets(line, sizeof line, stream) && line[3] == '-') say("%.*s", (int)strcspn(line, "\r\n"), line);
    say("%.*s", (int)strcspn(line, "\r\n"), line);
    TRY(fseek(stream, 0, SEEK_CUR)); // between reading and writing
    errno = 0;
    TRY(fwrite("0123456789", 1, 10, stream));
    TRY(fputs("words\n", stream) >= 0);
    TRY(fputc('!', stream) == '!');
    TRY(fflush(stream));
    TRY(fread(buf, 1, 200000, stream));
    say("%d", as_filled(buf, 200000, 0));
    TRY(fgetc(stream));
    TRY(feof(stream) != 0);
    TRY(ferror(stream));
    TRY(fclose(stream));
    TRY(fcntl(fd, F_GETFD));
}

static void partner(int fd) {
    hear(fd, 17);
    send_text(fd, "250-first\r\n250-second\r\n250 last\r\n");
    hear(fd, 17);
    send_filled(fd, 200000);
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
