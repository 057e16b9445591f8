// What is asked of a socket before it is connected, or of a listener, counts when the connection has been in use: a rate, a filter, an offset of peeks, times of
// what is sent.
#include "carried.h"
#include <linux/filter.h>
#include <linux/net_tstamp.h>

// A connection whose subject's end has the option from its socket's beginning on.
static int asked(int name, const void *value, socklen_t length) {
    int fd = bound(AF_INET);
    // Kernels before 6.9 have no offset of peeks for TCP.
    if (is_subject && setsockopt(fd, SOL_SOCKET, name, value, length) < 0 && name != SO_PEEK_OFF)
        die(__LINE__, "setsockopt");
    if (is_client) {
        struct sockaddr_storage address;
        socklen_t size = loopback(AF_INET, await_number(), &address);
        OK(connect(fd, (struct sockaddr *)&address, size));
    } else {
        OK(listen(fd, 1));
        tell_number(port_of(fd));
        int accepted = OK(accept(fd, NULL, NULL));
        OK(close(fd));
        fd = accepted;
    }
    warm_up(fd);
    return fd;
}

static void end(void) {
    struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, UINT32_MAX)};
    struct sock_fprog program = {1, all};
    int fds[] = {
        asked(SO_MAX_PACING_RATE, &(unsigned){500000000}, sizeof(unsigned)),
        asked(SO_ATTACH_FILTER, &program, sizeof program),
        asked(SO_PEEK_OFF, &(int){0}, sizeof(int)),
        // Over loopback there are none of this kind: unless they are taken they use up the memory that there is to receive.
        asked(SO_TIMESTAMPING, &(int){SOF_TIMESTAMPING_TX_HARDWARE}, sizeof(int)),
    };
    static const char *names[] = {"rate", "filter", "offset", "times"};
    for (int i = 0; i < 4; i++) {
        if (is_subject) say_whether_carried(names[i], fds[i]);
        else see_carried(fds[i]);
        OK(close(fds[i]));
    }
}

SUBJECT_AND_PARTNER_UNCONNECTED(end, end)
