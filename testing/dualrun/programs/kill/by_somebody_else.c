// A connection that somebody else ends (`ss -K`) is reset for both ends, wherever they are, and never ends in order.
#include "dual.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>

// As `ss -K` does, for the socket whose ports are given.
static int destroy(in_port_t own, in_port_t peer) {
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } ask = {
        .head = {.nlmsg_len = sizeof ask, .nlmsg_type = SOCK_DESTROY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
        .body = {.sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u},
    };
    ask.body.id = (struct inet_diag_sockid){.idiag_sport = own,
                                            .idiag_dport = peer,
                                            .idiag_src = {htonl(INADDR_LOOPBACK)},
                                            .idiag_dst = {htonl(INADDR_LOOPBACK)},
                                            .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}};
    struct {
        struct nlmsghdr head;
        struct nlmsgerr body;
        char rest[1024];
    } answer;
    int diag = OK(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
    OK(send(diag, &ask, sizeof ask, 0));
    OK(recv(diag, &answer, sizeof answer, 0));
    OK(close(diag));
    errno = -answer.body.error;
    return errno == 0 ? 0 : -1;
}

static void end(int fd) {
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    OK(getpeername(fd, (struct sockaddr *)&peer, &length));
    // A kernel without it says so, natively too.
    if (TRY_QUIETLY(destroy(port_of(fd), peer.sin_port)) != 0) OK(shutdown(fd, SHUT_RDWR));
}

struct reader {
    int fd, tid;
    ssize_t got;
    int error;
};

static void *reader(void *with) {
    struct reader *is = with;
    is->tid = gettid();
    tell_number(is->tid);
    is->got = recv(is->fd, buf, 1, 0);
    is->error = is->got < 0 ? errno : 0;
    return NULL;
}

enum { ASLEEP_AND_ASLEEP, ASLEEP_AND_AWAKE, CLOSED_AND_AWAKE, ROUNDS };

static void subject(void) {
    for (int round = 0; round < ROUNDS; round++) {
        int fd = connected();
        struct reader is = {.fd = fd};
        hear(fd, 5);
        send_text(fd, "world");
        pthread_t thread = start(reader, &is);
        if (round == ASLEEP_AND_ASLEEP) wait_asleep(await_number());
        else await();
        wait_asleep(is.tid);
        end(fd);
        finish(thread);
        say("the reader: %zd %s", is.got, strerrorname_np(is.error));
        if (round == CLOSED_AND_AWAKE) OK(close(fd));
        tell();
        if (round == CLOSED_AND_AWAKE) continue;
        TRY(recv(fd, buf, 1, 0));
        TRY(send(fd, "x", 1, MSG_NOSIGNAL));
        OK(close(fd));
    }
}

static void partner(void) {
    for (int round = 0; round < ROUNDS; round++) {
        int fd = connected();
        send_text(fd, "hello");
        hear(fd, 5);
        wait_asleep(await_number());
        if (round == ASLEEP_AND_ASLEEP) {
            tell_number(gettid());
            TRY(recv(fd, buf, 1, 0));
            await();
        } else {
            tell();
            await();
            say_poll("after it", fd, POLLIN | POLLRDHUP, -1);
            TRY(recv(fd, buf, 1, 0));
        }
        TRY(recv(fd, buf, 1, 0));
        TRY(send(fd, "x", 1, MSG_NOSIGNAL));
        OK(close(fd));
    }
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
