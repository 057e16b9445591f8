// system and popen while a connection is open: the children inherit it and do not touch it.
#include "talk.h"

static void again(const char *what, int fd) { say("%s %d", what, fd); }

static void subject(int fd) {
    TRY(system("exit 3") >> 8);
    send_text(fd, "ping");
    FILE *command = popen("echo from popen", "r");
    char line[64] = "";
    if (!command || !fgets(line, sizeof line, command)) die(__LINE__, "popen");
    say("%s", line);
    hear(fd, 4);
    TRY(pclose(command));
    talk("the parent", fd, fd);
    // A shell that writes to the connection itself.
    char script[64];
    snprintf(script, sizeof script, "echo by the shell >&%d", fd);
    TRY(system(script));
}

static void partner(int fd) {
    hear(fd, 4);
    send_text(fd, "pong");
    listen_to_talk(fd);
    hear(fd, 13);
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_AND_AGAIN(subject, partner)
