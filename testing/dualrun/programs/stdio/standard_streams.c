// printf and scanf where standard input and output are the connection.
#include "dual.h"

static void subject(int fd) {
    OK(dup2(fd, 0));
    OK(dup2(fd, 1));
    OK(close(fd));
    setvbuf(stdout, NULL, _IOLBF, 0);
    int a = 0, b = 0;
    for (int i = 0; i < 30; i++) {
        printf("what is %d + %d?\n", i, i);
        int sum;
        if (scanf("%d", &sum) != 1 || sum != 2 * i) die(__LINE__, "scanf");
    }
    TRY(puts("two numbers") >= 0);
    TRY(scanf("%d %d", &a, &b));
    say("%d %d", a, b);
    TRY(getchar());
    putchar('x');
    TRY(fflush(stdout));
    char *line = NULL;
    size_t room = 0;
    TRY(getline(&line, &room, stdin));
    say("%.*s", (int)strcspn(line, "\n"), line);
    free(line);
    printf("left in the buffer at exit");
}

static void partner(int fd) {
    for (int i = 0; i < 30; i++) {
        int a, b, at = 0;
        do OK(recv(fd, buf + at, 1, 0));
        while (buf[at++] != '\n');
        buf[at] = 0;
        if (sscanf(buf, "what is %d + %d?", &a, &b) != 2) die(__LINE__, buf);
        char text[20];
        snprintf(text, sizeof text, "%d\n", a + b);
        send_text(fd, text);
    }
    hear(fd, 12);
    send_text(fd, "17 4\n");
    hear(fd, 1);
    send_text(fd, "a whole line\n");
    hear(fd, 26);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
