// Options of TCP and IP are read back as they were set; what cannot be set is refused, and what has not been set has its default. A listener's are its connections'.
#include "dual.h"

static void look(int fd, const char *what) {
    static const struct {
        int level, name, value;
        const char *text;
    } options[] = {
        {IPPROTO_IP, IP_TTL, 7, "ttl"},
        {IPPROTO_IP, IP_TOS, 0x10, "tos"},
        {IPPROTO_IP, IP_RECVTTL, 1, "receive ttl"},
        {IPPROTO_TCP, TCP_KEEPIDLE, 77, "idle"},
        {IPPROTO_TCP, TCP_KEEPCNT, 3, "count"},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, 12345, "user time-out"},
        {IPPROTO_TCP, TCP_DEFER_ACCEPT, 0, "defer"},
        {IPPROTO_TCP, TCP_LINGER2, 9, "linger"},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        int value = -1;
        socklen_t length = sizeof value;
        int failed = getsockopt(fd, options[i].level, options[i].name, &value, &length);
        say("%s, %s before: %d, %d, %u bytes", what, options[i].text, failed, value, (unsigned)length);
        TRY(setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int)));
        failed = getsockopt(fd, options[i].level, options[i].name, &value, &length);
        say("%s, %s: %d, %d", what, options[i].text, failed, value);
    }
}

static void refused(int fd) {
    TRY(setsockopt(fd, IPPROTO_IP, IP_TTL, &(int){1000}, sizeof(int)));
    TRY(setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){-1}, sizeof(int)));
    TRY(setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &(int){3}, 2));
    TRY(setsockopt(fd, IPPROTO_TCP, 12345, &(int){3}, sizeof(int)));
    TRY(setsockopt(fd, IPPROTO_IPV6, 26, &(int){1}, sizeof(int)));
    TRY(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "nothing", 7));
    TRY(getsockopt(fd, IPPROTO_TCP, 12345, buf, &(socklen_t){4}));
}

static void congestion(int fd) {
    char name[16] = "";
    socklen_t length = sizeof name;
    TRY(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
    TRY(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length));
    say("%s, %u bytes", name, (unsigned)length);
    length = 1;
    memset(name, 'x', sizeof name);
    TRY(getsockopt(fd, IPPROTO_IP, IP_TTL, name, &length));
    say("a byte: %d, %c, %u bytes", name[0], name[1], (unsigned)length);
}

static void subject(int fd) {
    refused(fd);
    look(fd, "connection");
    congestion(fd);
    int listener = listening(AF_INET);
    OK(setsockopt(listener, IPPROTO_TCP, TCP_KEEPIDLE, &(int){55}, sizeof(int)));
    int other = connect_port(AF_INET, port_of(listener));
    int accepted = OK(accept(listener, NULL, NULL));
    int value = 0;
    OK(getsockopt(accepted, IPPROTO_TCP, TCP_KEEPIDLE, &value, &(socklen_t){sizeof value}));
    say("inherited: %d", value);
    OK(close(other));
    send_text(fd, "done");
}

static void partner(int fd) { hear(fd, 4); }

SUBJECT_AND_PARTNER(subject, partner)
