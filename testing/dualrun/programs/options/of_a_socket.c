// What a connection says of itself: type, family, protocol, state, error, names, file type.
#include "dual.h"

static int option(int fd, int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    if (getsockopt(fd, level, name, &value, &length) < 0) return -errno;
    return value;
}

static void subject(int fd) {
    say("type %d", option(fd, SOL_SOCKET, SO_TYPE));
    say("domain %d", option(fd, SOL_SOCKET, SO_DOMAIN));
    say("protocol %d", option(fd, SOL_SOCKET, SO_PROTOCOL));
    say("accepts %d", option(fd, SOL_SOCKET, SO_ACCEPTCONN));
    say("error %d", option(fd, SOL_SOCKET, SO_ERROR));
    say("keepalive %d", option(fd, SOL_SOCKET, SO_KEEPALIVE));
    say("reuse %d", option(fd, SOL_SOCKET, SO_REUSEADDR));
    say("broadcast %d", option(fd, SOL_SOCKET, SO_BROADCAST));
    say("no such option %d", option(fd, SOL_SOCKET, 12345));
    say("no such level %d", option(fd, 12345, 1));
    say("ttl %d", option(fd, IPPROTO_IP, IP_TTL));
    TRY(setsockopt(fd, SOL_SOCKET, 12345, &(int){1}, 4));
    TRY(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, 1));
    TRY(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, 4));
    say("keepalive %d", option(fd, SOL_SOCKET, SO_KEEPALIVE));
    TRY(listen(fd, 5));
    struct stat status;
    OK(fstat(fd, &status));
    say("socket %d, size %ld", S_ISSOCK(status.st_mode), (long)status.st_size);
    struct sockaddr_in own, peer;
    socklen_t own_length = sizeof own, peer_length = sizeof peer;
    OK(getsockname(fd, (struct sockaddr *)&own, &own_length));
    OK(getpeername(fd, (struct sockaddr *)&peer, &peer_length));
    say("own %s, %u bytes", inet_ntoa(own.sin_addr), (unsigned)own_length);
    say("peer %s, %u bytes", inet_ntoa(peer.sin_addr), (unsigned)peer_length);
    tell_number(own.sin_port);
    say("the peer's port: %d", await_number() == peer.sin_port);
    own_length = 4;
    OK(getsockname(fd, (struct sockaddr *)&own, &own_length));
    say("needs %u bytes", (unsigned)own_length);
    TRY(getpeername(fd, (struct sockaddr *)&own, (void *)16));
    TRY((fcntl(fd, F_GETFL) & ~O_LARGEFILE) == O_RDWR);
    TRY(fcntl(fd, F_GETFD));
    meet();
}

static void partner(int fd) {
    struct sockaddr_in own;
    OK(getsockname(fd, (struct sockaddr *)&own, &(socklen_t){sizeof own}));
    tell_number(own.sin_port);
    await();
    meet();
}

SUBJECT_AND_PARTNER(subject, partner)
