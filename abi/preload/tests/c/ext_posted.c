/* Posted operations, RDMA and plain calls on one connection; wrong arguments; notices. */
#define _DEFAULT_SOURCE
#include <signal.h>
#include "test.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#define LENGTH 200000
#define ROUNDS 50

static unsigned char memory[LENGTH];

static unsigned char octet(unsigned round, size_t at)
{
    return (unsigned char)(at * 31 + at / 253 + round);
}

static void word(int fd)
{
    char byte;
    CHECK(read(fd, &byte, 1) == 1 && byte == 'w');
}

static void one(int fd, int mode)
{
    struct sovia_segment segments[2], half;
    struct sovia_remote remote, none;
    uint32_t region;
    unsigned round;
    size_t at;
    convert(fd, mode);
    MUST(sovia_register(fd, memory, sizeof memory, SOVIA_LOCAL, &region));
    segments[0].address = memory;
    segments[0].length = 1000;
    segments[0].region = region;
    segments[1] = segments[0];
    segments[1].address = memory + 1000;
    segments[1].length = LENGTH - 1000;

    /* What is wrong is said, and changes nothing. */
    FAILS(sovia_register(fd, memory, 0, SOVIA_LOCAL, &region), EINVAL);
    FAILS(sovia_register(fd, memory, 8, 4, &region), EINVAL);
    FAILS(sovia_register(fd, (void *)4096, 8, SOVIA_LOCAL, &region), EFAULT);
    FAILS(sovia_register(fd, memory, 8, SOVIA_LOCAL, NULL), EFAULT);
    FAILS(sovia_deregister(fd, region + 1000), EINVAL);
    FAILS(sovia_advertise(fd, region, 1), EACCES);
    FAILS(sovia_advertise(fd, region + 1000, 1), EINVAL);
    FAILS(sovia_find_remote(fd, 99, 0, &remote), EAGAIN);
    FAILS(sovia_post_send(fd, segments, -1, 1), EINVAL);
    FAILS(sovia_post_send(fd, segments, SOVIA_SEGMENTS_MAX + 1, 1), EINVAL);
    FAILS(sovia_post_send(fd, NULL, 1, 1), EFAULT);
    segments[1].length++;
    FAILS(sovia_post_send(fd, segments, 2, 1), EFAULT);
    segments[1].length--;
    segments[1].address = &remote;
    FAILS(sovia_post_recv(fd, segments, 2, 1), EFAULT);
    segments[1].address = memory + 1000;
    segments[1].region = region + 1000;
    FAILS(sovia_post_recv(fd, segments, 2, 1), EINVAL);
    segments[1].region = region;
    /* A range of which one page is read-only is so as a whole. */
    half.address = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(half.address != MAP_FAILED);
    MUST(mprotect((char *)half.address + 4096, 4096, PROT_READ));
    MUST(sovia_register(fd, half.address, 8192, SOVIA_LOCAL, &half.region));
    half.length = 100;
    FAILS(sovia_post_recv(fd, &half, 1, 1), EFAULT);
    MUST(sovia_deregister(fd, half.region));
    MUST(munmap(half.address, 8192));
    FAILS(sovia_poll(fd, (struct sovia_completion *)&none, 0), EINVAL);
    FAILS(sovia_set_watermarks(fd, 0, 1), EINVAL);

    MUST(sovia_find_remote(fd, 7, 20000, &remote));
    CHECK(remote.length == LENGTH && remote.access == (SOVIA_READ | SOVIA_WRITE) && remote.tag == 7);
    none = remote;
    none.region += 1000;
    FAILS(sovia_post_write(fd, segments, 2, &none, 0, 1), ESTALE);
    none = remote;
    none.tag++;
    FAILS(sovia_post_write(fd, segments, 2, &none, 0, 1), ESTALE);
    none = remote;
    none.length--;
    FAILS(sovia_post_read(fd, segments, 2, &none, 0, 1), ESTALE);
    none = remote;
    none.access = SOVIA_WRITE;
    FAILS(sovia_post_write(fd, segments, 2, &none, 0, 1), ESTALE);
    FAILS(sovia_post_write(fd, segments, 2, &remote, 1, 1), EFAULT);
    FAILS(sovia_post_read(fd, segments, 0, &remote, 0, 1), EINVAL);

    for (round = 0; round < ROUNDS; round++) {
        for (at = 0; at < LENGTH; at++) memory[at] = octet(round, at);
        MUST(sovia_post_send(fd, segments, 2, round));
        CHECK(write(fd, "w", 1) == 1);
        CHECK(done(fd).op == SOVIA_OP_SEND);
        MUST(sovia_post_write(fd, segments, 2, &remote, 0, round));
        CHECK(done(fd).op == SOVIA_OP_WRITE);
        memset(memory, 0, sizeof memory);
        MUST(sovia_post_read(fd, segments, 2, &remote, 0, round));
        CHECK(done(fd).op == SOVIA_OP_READ);
        for (at = 0; at < LENGTH; at++) CHECK(memory[at] == octet(round, at));
        CHECK(write(fd, "w", 1) == 1);
    }
    word(fd);
    MUST(sovia_deregister(fd, region));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned called;

static void noticed(int fd, uint32_t events, void *argument)
{
    (void)fd;
    CHECK(argument == &called);
    pthread_mutex_lock(&lock);
    called |= events;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void other(int fd, int mode)
{
    static unsigned char inbox[LENGTH];
    struct sovia_segment segment;
    struct sovia_completion completion;
    struct epoll_event event;
    struct pollfd entry;
    uint32_t region;
    unsigned round;
    size_t at;
    int epoll, sign;
    convert(fd, mode);
    MUST(sovia_register(fd, memory, sizeof memory, SOVIA_READ | SOVIA_WRITE, &region));
    MUST(sovia_advertise(fd, region, 7));
    segment.address = inbox;
    segment.length = LENGTH;
    MUST(sovia_register(fd, inbox, LENGTH, SOVIA_WRITE, &segment.region));
    MUST(sign = sovia_completion_fd(fd));
    MUST(epoll = epoll_create1(0));
    event.events = EPOLLIN;
    event.data.fd = sign;
    MUST(epoll_ctl(epoll, EPOLL_CTL_ADD, sign, &event));
    CHECK(epoll_wait(epoll, &event, 1, 0) == 0);
    CHECK(sovia_wait(fd, &completion, 1, 0) == 0 && sovia_wait(fd, &completion, 1, 10) == 0);
    for (round = 0; round < ROUNDS; round++) {
        MUST(sovia_post_recv(fd, &segment, 1, round));
        CHECK(epoll_wait(epoll, &event, 1, 20000) == 1 && event.data.fd == sign);
        CHECK(sovia_poll(fd, &completion, 1) == 1);
        CHECK(completion.id == round && completion.error == 0 && completion.length == LENGTH);
        CHECK(epoll_wait(epoll, &event, 1, 0) == 0);
        for (at = 0; at < LENGTH; at++) CHECK(inbox[at] == octet(round, at));
        word(fd);
        word(fd);
        for (at = 0; at < LENGTH; at++) CHECK(memory[at] == octet(round, at));
    }
    MUST(sovia_set_callback(fd, noticed, &called));
    CHECK(write(fd, "w", 1) == 1);
    pthread_mutex_lock(&lock);
    while (!(called & SOVIA_END)) pthread_cond_wait(&changed, &lock);
    CHECK(called & SOVIA_WRITABLE && called & SOVIA_READABLE);
    pthread_mutex_unlock(&lock);
    MUST(sovia_set_callback(fd, NULL, NULL));
    entry.fd = fd;
    entry.events = POLLIN;
    CHECK(poll(&entry, 1, 20000) == 1);
    CHECK(read(fd, inbox, 1) == 0);
    MUST(close(sign));
    MUST(close(epoll));
}

int main(int count, char **arguments)
{
    both(mode_of(count > 1 ? arguments[1] : "vi"), other, one);
    return 0;
}
