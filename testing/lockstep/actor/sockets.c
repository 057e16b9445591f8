// What concerns a socket as a whole: its beginning, its end, its options, its other numbers.
#include "actor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <linux/sockios.h>

// listen SLOT: the port
static void begin_listener(char **words) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof place;
    if (fd < 0 || bind(fd, (struct sockaddr *)&place, sizeof place) < 0 || listen(fd, 16) < 0
        || getsockname(fd, (struct sockaddr *)&place, &length) < 0) {
        answer_result(-1);
        return;
    }
    slots[atoi(words[1])] = fd;
    answer("port %d", ntohs(place.sin_port));
}

// Small segments that wait for acknowledgements would come when the kernel's clock says, which no two worlds share.
static int at_once(int fd) {
    int one = 1, because = errno;
    if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    errno = because;
    return fd;
}

// connect SLOT PORT
static void connect_slot(char **words) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in place = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)atoi(words[2]))};
    if (connect(fd, (struct sockaddr *)&place, sizeof place) < 0) {
        answer_result(-1);
        close(fd);
        return;
    }
    fill_slot(words[1], at_once(fd));
}

static const struct {
    const char *name;
    int level, option;
} options[] = {
    {"error", SOL_SOCKET, SO_ERROR},       {"lowat", SOL_SOCKET, SO_RCVLOWAT}, {"oobinline", SOL_SOCKET, SO_OOBINLINE},
    {"keepalive", SOL_SOCKET, SO_KEEPALIVE}, {"type", SOL_SOCKET, SO_TYPE},      {"nodelay", IPPROTO_TCP, TCP_NODELAY},
    {"listens", SOL_SOCKET, SO_ACCEPTCONN}, {"cork", IPPROTO_TCP, TCP_CORK},
};

// set|get SLOT OPTION [VALUE]
static void option(char **words, int count) {
    int fd = slot_of(words[1]);
    if (!strcmp(words[2], "nonblock") && count == 4) {
        int flags = fcntl(fd, F_GETFL);
        answer_result(fcntl(fd, F_SETFL, atoi(words[3]) ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
        return;
    }
    if (!strcmp(words[2], "flags")) {
        int flags = fcntl(fd, F_GETFL);
        answer_result(flags < 0 ? -1 : flags & (O_NONBLOCK | O_ACCMODE | O_ASYNC));
        return;
    }
    if (!strcmp(words[2], "linger") && count == 4) {
        struct linger linger = {atoi(words[3]) >= 0, atoi(words[3])};
        answer_result(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
        return;
    }
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (strcmp(options[i].name, words[2])) continue;
        int value = count == 4 ? atoi(words[3]) : 0;
        socklen_t length = sizeof value;
        if (count == 4) answer_result(setsockopt(fd, options[i].level, options[i].option, &value, sizeof value));
        else if (getsockopt(fd, options[i].level, options[i].option, &value, &length) < 0) answer_result(-1);
        else answer("is %d", value);
        return;
    }
    answer("? %s", words[2]);
}

// fionread|atmark SLOT
static void ask(char **words) {
    int value = 0;
    unsigned long what = !strcmp(words[0], "fionread") ? FIONREAD : SIOCATMARK;
    if (ioctl(slot_of(words[1]), what, &value) < 0) answer_result(-1);
    else answer("is %d", value);
}

// peer SLOT: whether it has one
static void peer(char **words) {
    struct sockaddr_in place;
    socklen_t length = sizeof place;
    answer_result(getpeername(slot_of(words[1]), (struct sockaddr *)&place, &length));
}

static void close_slot(char **words) {
    int fd = slot_of(words[1]);
    int result = close(fd);
    if (fd >= 0) slots[atoi(words[1])] = -1;
    answer_result(result);
}

int sockets_command(char **words, int count) {
    if (!strcmp(words[0], "listen") && count == 2) begin_listener(words);
    else if (!strcmp(words[0], "connect") && count == 3) connect_slot(words);
    else if (!strcmp(words[0], "accept") && count == 3) fill_slot(words[1], at_once(accept(slot_of(words[2]), NULL, NULL)));
    else if ((!strcmp(words[0], "set") && count == 4) || (!strcmp(words[0], "get") && count == 3)) option(words, count);
    else if ((!strcmp(words[0], "fionread") || !strcmp(words[0], "atmark")) && count == 2) ask(words);
    else if (!strcmp(words[0], "peer") && count == 2) peer(words);
    else if (!strcmp(words[0], "shut") && count == 3) answer_result(shutdown(slot_of(words[1]), atoi(words[2])));
    else if (!strcmp(words[0], "close") && count == 2) close_slot(words);
    else if (!strcmp(words[0], "dup") && count == 3) fill_slot(words[2], dup(slot_of(words[1])));
    else if (!strcmp(words[0], "dup2") && count == 3)
        answer_result(dup2(slot_of(words[1]), slot_of(words[2])) < 0 ? -1 : 0);
    else return 0;
    return 1;
}
