// A stream and plain calls on one connection in turns, the stream flushed in between.
#include "dual.h"

static void subject(int fd) {
    FILE *out = fdopen(OK(dup(fd)), "w"), *in = fdopen(OK(dup(fd)), "r");
    for (int i = 0; i < 40; i++) {
        fprintf(out, "S%03d", i);
        OK(fflush(out));
        OK(write(fd, "plain", 5));
        if (i % 2 == 0) {
            if (fread(buf, 1, 4, in) != 4) die(__LINE__, "fread");
        } else {
            if (recv_all(fd, buf, 4) != 4) die(__LINE__, "recv");
        }
        if (memcmp(buf, "turn", 4) != 0) die(__LINE__, "other bytes");
    }
    // fwrite of more than any buffer holds
    fill(buf, 500000, 0);
    TRY(fwrite(buf, 1000, 500, out));
    OK(fclose(out));
    OK(shutdown(fd, SHUT_WR));
    TRY(fgetc(in));
}

static void partner(int fd) {
    for (int i = 0; i < 40; i++) {
        char text[16];
        if (recv_all(fd, text, 9) != 9 || memcmp(text + 4, "plain", 5) != 0) die(__LINE__, "recv");
        send_text(fd, "turn");
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
