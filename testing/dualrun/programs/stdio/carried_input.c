// Input in the buffer of stdin whose descriptor becomes a connection, and something else again: it is read first, and an end that was met stays.
#include "dual.h"

static void line(void) {
    char text[100] = "";
    if (fgets(text, sizeof text, stdin) == NULL) say("no line, end %d, error %d", feof(stdin) != 0, ferror(stdin) != 0);
    else say("line \"%.*s\"", (int)strcspn(text, "\n"), text);
}

// What stdin is next has this.
static void become(const char *text) {
    int ends[2];
    OK(pipe(ends));
    OK(write(ends[1], text, strlen(text)));
    OK(dup2(ends[0], 0));
    OK(close(ends[0]));
    OK(close(ends[1]));
}

static void subject(int fd) {
    become("one\ntwo\nthree");
    line();
    OK(dup2(fd, 0));
    line();
    settle(fd, 25);
    // The last line has no end, and goes on with what comes next.
    line();
    line();

    // What of the connection has been read, and not been taken, is read first then, and what was put back before that.
    become(" six\nseven\neight");
    line();
    TRY(ungetc('5', stdin));
    TRY(ungetc('!', stdin));
    OK(dup2(fd, 0));
    become(" six\nseven\neight");
    line();
    OK(dup2(fd, 0));
    line();
    tell();
    settle(fd, 3);

    // An end stays until it is cleared.
    int null = OK(open("/dev/null", O_RDONLY));
    OK(dup2(null, 0));
    TRY(getchar());
    TRY(feof(stdin) != 0);
    OK(dup2(fd, 0));
    TRY(feof(stdin) != 0);
    TRY(getchar());
    clearerr(stdin);
    TRY(getchar());
    TRY(feof(stdin) != 0);
    OK(shutdown(fd, SHUT_WR));
    TRY(getchar());
    TRY(getchar());
    TRY(getchar());
    TRY(feof(stdin) != 0);
    become("more");
    TRY(feof(stdin) != 0);
    TRY(getchar());
    clearerr(stdin);
    line();
    line();
}

static void partner(int fd) {
    send_text(fd, " and\nfour\nfive\nfive again");
    await();
    send_text(fd, "xyz");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
