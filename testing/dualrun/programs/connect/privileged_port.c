// Ports that a user without rights may not take.
#include "dual.h"

#include <grp.h>

enum { NOBODY = 65534 };

static void try_port(const char *who, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    int fd = OK(socket(AF_INET, SOCK_STREAM, 0));
    say("%s, %d", who, port);
    TRY(bind(fd, (struct sockaddr *)&address, sizeof address));
    OK(close(fd));
}

static void server(void) {
    if (getuid() == 0) {
        OK(setgroups(0, NULL));
        OK(setresgid(NOBODY, NOBODY, NOBODY));
        OK(setresuid(NOBODY, NOBODY, NOBODY));
    }
    try_port("nobody", 1);
    try_port("nobody", 937);
}

static void client(void) {
    try_port("whoever runs the tests", 938);
}

SERVER_AND_CLIENT(server, client)
