// TCP_ZEROCOPY_RECEIVE: less than a page is not mapped; the kernel says how much is to be received in the usual way.
#include "dual.h"
#include <sys/mman.h>

// `linux/tcp.h`, with which `netinet/tcp.h` does not go together.
enum { ZEROCOPY_RECEIVE = 35 };
struct zerocopy_receive {
    uint64_t address;
    uint32_t length, recv_skip_hint, inq;
    int32_t err;
};

static void subject(int fd) {
    settle(fd, 10);
    void *window = mmap(NULL, 65536, PROT_READ, MAP_SHARED, fd, 0);
    say("mmap %s", window == MAP_FAILED ? strerrorname_np(errno) : "succeeds");
    for (int turn = 0; turn < 2; turn++) {
        struct zerocopy_receive receive = {.address = (uintptr_t)window, .length = 65536};
        TRY(getsockopt(fd, IPPROTO_TCP, ZEROCOPY_RECEIVE, &receive, &(socklen_t){sizeof receive}));
        say("mapped %u, to be received %u, there are %u", receive.length, receive.recv_skip_hint, receive.inq);
        hear(fd, 5);
    }
    send_text(fd, "all");
}

static void partner(int fd) {
    send_text(fd, "0123456789");
    // As one that waits for a processor does nothing for a while.
    usleep(200000);
    hear(fd, 3);
}

SUBJECT_AND_PARTNER(subject, partner)
