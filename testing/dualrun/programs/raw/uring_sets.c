// A set of epoll that is changed by a ring of io_uring which the program looks after itself, as libuv's loops are.
#include "epoll.h"
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { PLACES = 8, CHANGE = 29 };

static struct {
    int fd;
    uint32_t *head, *tail, mask, *done_head, *done_tail, done_mask;
    struct io_uring_sqe *asked;
    struct io_uring_cqe *done;
    struct epoll_event events[PLACES];
} ring;

// Kernels and sandboxes without it have the plain call.
static void open_ring(void) {
    struct io_uring_params made = {.flags = 1 << 16};
    ring.fd = syscall(SYS_io_uring_setup, PLACES, &made);
    if (ring.fd < 0) return;
    OK(fcntl(ring.fd, F_SETFD, FD_CLOEXEC));
    size_t length = made.cq_off.cqes + made.cq_entries * sizeof *ring.done;
    char *queue = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
    ring.asked = mmap(NULL, made.sq_entries * sizeof *ring.asked, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQES);
    if (queue == MAP_FAILED || ring.asked == MAP_FAILED) die(__LINE__, "mmap");
    ring.head = (uint32_t *)(queue + made.sq_off.head);
    ring.tail = (uint32_t *)(queue + made.sq_off.tail);
    ring.mask = *(uint32_t *)(queue + made.sq_off.ring_mask);
    ring.done_head = (uint32_t *)(queue + made.cq_off.head);
    ring.done_tail = (uint32_t *)(queue + made.cq_off.tail);
    ring.done_mask = *(uint32_t *)(queue + made.cq_off.ring_mask);
    ring.done = (struct io_uring_cqe *)(queue + made.cq_off.cqes);
}

static void ask(int set, int operation, int fd, unsigned wanted) {
    uint32_t at = *ring.tail & ring.mask;
    ring.events[at] = (struct epoll_event){.events = wanted, .data.fd = fd};
    ring.asked[at] = (struct io_uring_sqe){.opcode = CHANGE, .fd = set, .off = fd, .addr = (uintptr_t)&ring.events[at],
                                           .len = operation, .user_data = operation};
    __atomic_store_n(ring.tail, *ring.tail + 1, __ATOMIC_RELEASE);
}

// Has the kernel do what is asked for, and says what came of it.
static void submit(const char *what) {
    unsigned count = *ring.tail - *ring.head;
    OK(syscall(SYS_io_uring_enter, ring.fd, count, count, IORING_ENTER_GETEVENTS, NULL, 0));
    for (; *ring.done_head != __atomic_load_n(ring.done_tail, __ATOMIC_ACQUIRE); __atomic_store_n(ring.done_head, *ring.done_head + 1, __ATOMIC_RELEASE)) {
        struct io_uring_cqe *done = &ring.done[*ring.done_head & ring.done_mask];
        say("%s, operation %d: %s", what, (int)done->user_data, done->res == 0 ? "done" : strerrorname_np(-done->res));
    }
}

static void change(const char *what, int set, int operation, int fd, unsigned wanted) {
    if (ring.fd < 0) {
        int result = control(set, operation, fd, wanted);
        say("%s, operation %d: %s", what, operation, result == 0 ? "done" : strerrorname_np(errno));
    } else {
        ask(set, operation, fd, wanted);
        submit(what);
    }
}

static void subject(void) {
    open_ring();
    int fd = connected_by(AF_INET), set = new_set(), pipes[2];
    OK(pipe(pipes));
    change("young", set, EPOLL_CTL_ADD, fd, EPOLLIN);
    warm_up(fd);
    tell();
    say_set("data", set, -1);
    hear(fd, 4);
    change("again", set, EPOLL_CTL_ADD, fd, EPOLLIN);
    change("room", set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLOUT);
    say_set("room", set, -1);
    change("a pipe", set, EPOLL_CTL_ADD, pipes[0], EPOLLIN);
    if (ring.fd >= 0) {
        // Several at once.
        ask(set, EPOLL_CTL_MOD, fd, EPOLLIN);
        ask(set, EPOLL_CTL_DEL, pipes[0], 0);
        submit("two");
    } else {
        change("two", set, EPOLL_CTL_MOD, fd, EPOLLIN);
        change("two", set, EPOLL_CTL_DEL, pipes[0], 0);
    }
    OK(write(pipes[1], "", 1));
    say_set("neither", set, 0);
    tell();
    say_set("data", set, -1);
    hear(fd, 4);
    change("gone", set, EPOLL_CTL_DEL, fd, 0);
    tell();
    settle(fd, 4);
    say_set("deleted", set, 0);
    change("back", set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET);
    say_set("back", set, -1);
    hear(fd, 4);
    say_set("told", set, 0);
    change("no descriptor", set, EPOLL_CTL_ADD, 899, EPOLLIN);
    OK(close(ring.fd < 0 ? pipes[1] : ring.fd));
    OK(shutdown(fd, SHUT_WR));
    say_set("the end", set, -1);
    recv_to_end(fd);
}

static void partner(void) {
    int fd = connected();
    for (int turn = 0; turn < 3; turn++) {
        await();
        send_text(fd, "data");
    }
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER_UNCONNECTED(subject, partner)
