/* Both ends fill the connection at once, with long messages: RDMA reads from each other, and bytes that the other echoes.
   The NIC gathers and scatters these with sendmsg and recvmsg, and its TCP connection must not be taken for one of the program's. */
#define _DEFAULT_SOURCE
#include "test.h"

#include <fcntl.h>
#include <poll.h>

#define LENGTH 65536
#define ROUNDS 100
#define BYTES 300000

static unsigned char memory[LENGTH], got[LENGTH];
static char sent[BYTES], back[BYTES];

static unsigned char octet(size_t at)
{
    return (unsigned char)(at * 31 + at / 253);
}

/* Reads from the other's memory, two at a time. */
static void reads(int fd)
{
    struct sovia_segment segment;
    struct sovia_remote remote;
    uint32_t region;
    unsigned round;
    size_t at;
    for (at = 0; at < LENGTH; at++) memory[at] = octet(at);
    MUST(sovia_register(fd, memory, LENGTH, SOVIA_READ, &region));
    MUST(sovia_advertise(fd, region, 1));
    segment.address = got;
    segment.length = LENGTH;
    MUST(sovia_register(fd, got, LENGTH, SOVIA_LOCAL, &segment.region));
    MUST(sovia_find_remote(fd, 1, 20000, &remote));
    MUST(sovia_post_read(fd, &segment, 1, &remote, 0, 0));
    for (round = 1; round <= ROUNDS; round++) {
        MUST(sovia_post_read(fd, &segment, 1, &remote, 0, round));
        CHECK(done(fd).id == round - 1);
    }
    CHECK(done(fd).id == ROUNDS);
    for (at = 0; at < LENGTH; at++) CHECK(got[at] == octet(at));
}

/* Writes as long as there is room, whatever there is to be read, and reads. */
static void bytes(int fd)
{
    struct pollfd entry;
    size_t out = 0, in = 0;
    ssize_t n;
    for (n = 0; n < BYTES; n++) sent[n] = (char)(n * 7 + n / 255);
    MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
    entry.fd = fd;
    while (out < BYTES || in < BYTES) {
        entry.events = POLLIN;
        if (out < BYTES) entry.events |= POLLOUT;
        CHECK(poll(&entry, 1, 20000) == 1);
        if (out < BYTES && (n = write(fd, sent + out, BYTES - out)) > 0) out += (size_t)n;
        if ((n = read(fd, back + in, BYTES - in)) > 0) in += (size_t)n;
    }
    CHECK(memcmp(sent, back, BYTES) == 0);
    MUST(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK));
}

static void end(int fd, int mode)
{
    char byte;
    convert(fd, mode);
    reads(fd);
    bytes(fd);
    reads(fd);
    /* The other may still read from here. */
    CHECK(write(fd, "e", 1) == 1);
    CHECK(read(fd, &byte, 1) == 1 && byte == 'e');
}

int main(int count, char **arguments)
{
    both(mode_of(count > 1 ? arguments[1] : "vi"), end, end);
    return 0;
}
