// Whether TCP carries what an end sends, for options that only TCP can honour and whose effect shows in nothing but time.
#ifndef CARRIED_H
#define CARRIED_H

#include "dual.h"

// Bytes that the kernel has sent: `tcpi_bytes_sent`, which glibc's structure lacks.
SHARED uint64_t sent_by_tcp(int fd) {
    enum { AT = 200 };
    char told[AT + sizeof(uint64_t)] = "";
    uint64_t sent;
    OK(getsockopt(fd, IPPROTO_TCP, TCP_INFO, told, &(socklen_t){sizeof told}));
    memcpy(&sent, told + AT, sizeof sent);
    return sent;
}

enum { CARRIED = 100000 };

// The subject's part, and the partner's.
SHARED void say_whether_carried(const char *what, int fd) {
    uint64_t before = sent_by_tcp(fd);
    send_filled(fd, CARRIED);
    await();
    say("%s: %s", what, sent_by_tcp(fd) - before >= CARRIED ? "TCP carries it" : "TCP does not carry it");
}

SHARED void see_carried(int fd) {
    recv_filled(fd, CARRIED);
    tell();
}

#endif
