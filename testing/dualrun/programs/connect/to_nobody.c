// Addresses that are no host's: of a group, of all hosts, of none that there is a way to.
#include "dual.h"

static void at(const char *text) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(text)};
    int fd = OK(socket(AF_INET, SOCK_STREAM, 0));
    say("%s", text);
    TRY(bind(fd, (struct sockaddr *)&address, sizeof address));
    OK(close(fd));
    // Where somebody listens, if it were this host's.
    address.sin_port = port_of(listening(AF_INET));
    fd = OK(socket(AF_INET, SOCK_STREAM, 0));
    TRY(connect(fd, (struct sockaddr *)&address, sizeof address));
    OK(close(fd));
}

static void end(void) {
    at("224.0.0.1");
    at("239.1.2.3");
    at("255.255.255.255");
}

SERVER_AND_CLIENT(end, end)
