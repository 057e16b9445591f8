// TCP_INQ: each message says how much is left, as far as the room for control data goes; the end counts as a byte.
#include "dual.h"

#ifndef TCP_INQ
#define TCP_INQ 36
#endif

static void hear_message(int fd, size_t length, size_t room, int flags) {
    char text[32] = "";
    _Alignas(struct cmsghdr) char control[128];
    memset(control, 0x55, sizeof control);
    struct iovec piece = {text, length};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room ? control : NULL, .msg_controllen = room};
    ssize_t got = recvmsg(fd, &message, flags);
    if (got < 0) {
        say("%zu, room %zu: %s, control %zu", length, room, strerrorname_np(errno), (size_t)message.msg_controllen);
        return;
    }
    say("%zu, room %zu: %zd \"%.*s\", flags 0x%x, control %zu", length, room, got, (int)got, text, message.msg_flags,
        (size_t)message.msg_controllen);
    struct cmsghdr *first = message.msg_controllen ? CMSG_FIRSTHDR(&message) : NULL;
    if (!first) return;
    int left;
    memcpy(&left, CMSG_DATA(first), sizeof left);
    say("level %d, type %d, length %zu: %x", first->cmsg_level, first->cmsg_type, (size_t)first->cmsg_len,
        first->cmsg_len >= CMSG_LEN(sizeof left) ? (unsigned)left : 0);
}

static void set(int fd, int on) {
    int is = -1;
    socklen_t length = sizeof is;
    TRY(setsockopt(fd, IPPROTO_TCP, TCP_INQ, &on, sizeof on));
    OK(getsockopt(fd, IPPROTO_TCP, TCP_INQ, &is, &length));
    say("is %d", is);
}

static void subject(int fd) {
    settle(fd, 30);
    hear_message(fd, 1, 128, 0);
    set(fd, 2);
    hear_message(fd, 1, 128, 0);
    set(fd, 1);
    static const size_t rooms[] = {128, 24, 23, 20, 19, 16, 15, 0};
    for (int i = 0; i < 8; i++) hear_message(fd, 1, rooms[i], 0);
    hear_message(fd, 2, 128, MSG_PEEK);
    hear_message(fd, 0, 128, 0);
    hear_message(fd, 2, 128, MSG_TRUNC | MSG_PEEK);
    TRY(recv(fd, buf, 1, 0));
    struct mmsghdr two[2];
    char control[2][64];
    struct iovec pieces[2] = {{buf, 2}, {buf, 3}};
    memset(two, 0, sizeof two);
    for (int i = 0; i < 2; i++)
        two[i].msg_hdr =
            (struct msghdr){.msg_iov = pieces + i, .msg_iovlen = 1, .msg_control = control[i], .msg_controllen = 64};
    TRY(recvmmsg(fd, two, 2, 0, NULL));
    for (int i = 0; i < 2; i++) {
        struct cmsghdr *first = CMSG_FIRSTHDR(&two[i].msg_hdr);
        say("%u: %d", two[i].msg_len, first ? *(int *)CMSG_DATA(first) : -1);
    }
    set(fd, 0);
    hear_message(fd, 1, 128, 0);
    set(fd, 1);
    hear_message(fd, 20, 128, 0);
    hear_message(fd, 20, 128, MSG_DONTWAIT);
    meet();
    settle(fd, 2);
    settle_end(fd);
    hear_message(fd, 1, 128, 0);
    hear_message(fd, 1, 128, 0);
    hear_message(fd, 1, 128, 0);
}

static void partner(int fd) {
    send_text(fd, "abcdefghijklmnopqrstuvwxyz0123");
    meet();
    send_text(fd, "45");
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

// Set before there is a connection: on the listener, and before connect.
static void subject_early(void) {
    int fd, on = 1;
    if (is_client) {
        struct sockaddr_storage address;
        fd = OK(socket(AF_INET, SOCK_STREAM, 0));
        OK(setsockopt(fd, IPPROTO_TCP, TCP_INQ, &on, sizeof on));
        socklen_t length = loopback(AF_INET, await_number(), &address);
        OK(connect(fd, (struct sockaddr *)&address, length));
    } else {
        int listener = listening(AF_INET);
        OK(setsockopt(listener, IPPROTO_TCP, TCP_INQ, &on, sizeof on));
        tell_number(port_of(listener));
        fd = OK(accept(listener, NULL, NULL));
        OK(close(listener));
    }
    warm_up(fd);
    settle(fd, 5);
    hear_message(fd, 2, 128, 0);
    tell();
    OK(close(fd));
    subject(connected());
}

static void partner_early(void) {
    int fd = connected();
    send_text(fd, "early");
    await();
    OK(close(fd));
    partner(connected());
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject_early, partner_early)
