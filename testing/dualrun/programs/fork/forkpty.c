// forkpty and login_tty put a terminal over the standard numbers, one of which is a connection.
#include "dual.h"
#include <pty.h>
#include <termios.h>
#include <utmp.h>

static void on_the_terminal(void) {
    char line[20];
    puts("a terminal");
    fflush(stdout);
    say("%d %d %d", isatty(0), isatty(1), isatty(2));
    TRY(fgets(line, sizeof line, stdin) == line);
    say("%.*s", (int)strcspn(line, "\n"), line);
    _exit(0);
}

static void talk_to(int leader, pid_t child) {
    struct termios settings;
    OK(tcgetattr(leader, &settings));
    settings.c_lflag &= ~ECHO;
    OK(tcsetattr(leader, TCSANOW, &settings));
    size_t have = 0;
    while (have < 12) have += OK(read(leader, buf + have, 12 - have));
    OK(write(leader, "a line\n", 7));
    say_child("child", child);
    say("%.10s", buf);
    OK(close(leader));
}

static void subject(int fd) {
    OK(dup2(fd, 1));
    OK(dup2(fd, 0));
    int leader, terminal;
    pid_t child = OK(forkpty(&leader, NULL, NULL, NULL));
    if (child == 0) on_the_terminal();
    talk_to(leader, child);
    OK(openpty(&leader, &terminal, NULL, NULL, NULL));
    child = OK(fork());
    if (child == 0) {
        OK(close(leader));
        OK(login_tty(terminal));
        on_the_terminal();
    }
    OK(close(terminal));
    talk_to(leader, child);
    puts("the connection");
    fflush(stdout);
    hear(fd, 3);
}

static void partner(int fd) {
    hear(fd, 15);
    send_text(fd, "end");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
