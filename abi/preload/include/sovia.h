/* Extended sockets: zero-copy, asynchronous and one-sided calls beside the plain ones, on one connection.
 *
 *     int on = 1;
 *     setsockopt(fd, SOL_SOVIA, SOVIA_VI_MODE, &on, sizeof on);       (this host: shared memory)
 *     setsockopt(fd, SOL_SOVIA, SOVIA_IWARP_MODE, &on, sizeof on);    (any host: iWARP over the TCP connection)
 *
 * converts a connected TCP socket in place, when both ends ask. It waits for the other end for SO_RCVTIMEO if that is set, else for
 * 5 s. send, recv, read, write, poll, select, epoll, shutdown, close, dup and their kin keep their meaning. getsockopt tells the mode: 1 or 0.
 *
 * errno of setsockopt; after each but those marked * the stream is as it was, though it is not accelerated any more:
 *     ENOPROTOOPT  libsovia.so is not there, or no such option     EINVAL       the value is not an int of 0 or 1; 0 on a converted socket
 *     EBADF, ENOTSOCK, EOPNOTSUPP (not TCP), ENOTCONN              EALREADY     it is converted
 *     EBUSY        bytes of the plain stream are unread, or the socket has duplicates, or has moved to shared memory already: ask early
 *     ETIMEDOUT    the other end did not ask (* over iWARP, at the end that had opened the connection)
 *     EHOSTUNREACH SOVIA_VI_MODE to another host                   EACCES       who asked could not prove to hold the other end
 *     ECONNREFUSED *, EPROTO *: the other end refused, or speaks something else; EMFILE, ENOMEM
 * After those marked * the connection is reset.
 *
 * All calls return -1 and set errno on failure, and change nothing then. Common to all: EBADF; EOPNOTSUPP on what is not converted;
 * ENOTCONN in a forked child, to which the socket does not belong; EFAULT for what is no memory. They may be called from any thread, and
 * not from signal handlers. None is a point of cancellation, nor are send, recv and their kin on a converted socket. Setting
 * SOVIA_IWARP_MODE needs 20 kB of stack. Link with -lsovia, before the C library, or run under `sovia run`. One page: docs/extended-sockets.md. */
#ifndef SOVIA_H
#define SOVIA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Level and options of setsockopt and getsockopt. */
#define SOL_SOVIA 0x534f
#define SOVIA_VI_MODE 1
#define SOVIA_IWARP_MODE 2

/* What the peer may do with a region. */
#define SOVIA_LOCAL 0
#define SOVIA_READ 1
#define SOVIA_WRITE 2

/* What an operation was. */
#define SOVIA_OP_SEND 1u
#define SOVIA_OP_RECV 2u
#define SOVIA_OP_WRITE 3u
#define SOVIA_OP_READ 4u

/* What a callback is told. */
#define SOVIA_COMPLETION 0x1u /* a completion can be taken */
#define SOVIA_READABLE 0x2u   /* as much as the receive watermark can be read, or the end */
#define SOVIA_WRITABLE 0x4u   /* there is room for as much as the send watermark */
#define SOVIA_END 0x8u        /* nothing more will come */

#define SOVIA_SEGMENTS_MAX 16 /* of one operation */
#define SOVIA_OUTSTANDING_MAX 1024 /* operations of a socket, posted or not taken */

/* A piece of registered memory. */
struct sovia_segment {
    void *address;
    uint32_t length;
    uint32_t region;
};

/* A region of the peer's, of which it has told, as sovia_find_remote fills it in: to be given back whole. region is this process's number
 * of it, not the peer's, and another for each socket. */
struct sovia_remote {
    uint64_t tag;
    uint64_t length;
    uint32_t region;
    uint32_t access;
};

/* An operation that has ended. error is 0, EMSGSIZE (the peer's receive is too short: it stays), EACCES or EFAULT (memory that may not be reached: the
 * connection ends), ESHUTDOWN (the peer ended it first), ECONNRESET, ECANCELED. */
struct sovia_completion {
    uint64_t id;
    uint32_t op;
    int32_t error;
    uint32_t length;
    uint32_t reserved;
};

/* fd is the descriptor that it was set with. Runs on a thread of its own, never twice at once; may call everything but pthread_exit, which
 * ends the program. */
typedef void sovia_callback(int fd, uint32_t events, void *argument);

/* Registers memory, which must stay mapped until it is deregistered. Large messages come without a copy into what the peer may write. It counts
 * as a whole: with one page that is read-only all of it is. EINVAL (no bytes, access), EFAULT (not mapped, or read-only and SOVIA_WRITE), ENOMEM. */
int sovia_register(int fd, void *address, size_t length, int access, uint32_t *region);
/* EINVAL (no such region), EBUSY (an operation on it is under way). The peer hears that it is gone. */
int sovia_deregister(int fd, uint32_t region);
/* Tells the peer of a region, by a tag of the program's own. EINVAL, EACCES (SOVIA_LOCAL), ENOBUFS (1024 are told of), EPIPE. */
int sovia_advertise(int fd, uint32_t region, uint64_t tag);
/* The peer's region with that tag, when it tells of it; timeout_ms -1 is for ever. EAGAIN (not yet), ESHUTDOWN, ECONNRESET (never), EINTR. */
int sovia_find_remote(int fd, uint64_t tag, int timeout_ms, struct sovia_remote *remote);

/* Posts one message: the segments, one after the other. Waits for the peer's receive, without the caller.
 * EINVAL (count, region), EFAULT (outside the region), EMSGSIZE, EAGAIN (SOVIA_OUTSTANDING_MAX), EPIPE. */
int sovia_post_send(int fd, const struct sovia_segment *segments, int count, uint64_t id);
/* Posts room for one message. Errors as above, EFAULT for a region that is read-only, too; ESHUTDOWN when no more will come. */
int sovia_post_recv(int fd, const struct sovia_segment *segments, int count, uint64_t id);
/* RDMA, without the peer's program: to its region from offset on, or from there. Errors as above; EACCES (the peer does not allow it), EFAULT
 * (beyond its end), ESTALE (withdrawn, of another socket, or not as it was told of). */
int sovia_post_write(int fd, const struct sovia_segment *segments, int count, const struct sovia_remote *remote,
                     uint64_t offset, uint64_t id);
int sovia_post_read(int fd, const struct sovia_segment *segments, int count, const struct sovia_remote *remote,
                    uint64_t offset, uint64_t id);

/* Takes up to count completions; how many. */
int sovia_poll(int fd, struct sovia_completion *completions, int count);
/* As sovia_poll, but waits for the first: 0 when timeout_ms have passed. EINTR. When there will be none any more: ESHUTDOWN (the peer ended the
 * connection), ECONNRESET (it was lost), EPROTO (the peer broke the rules), ECANCELED (another thread closes fd). */
int sovia_wait(int fd, struct sovia_completion *completions, int count, int timeout_ms);
/* A new descriptor, to be closed, which is readable while there are completions: for poll and epoll. The end fd shows, not this. EMFILE. */
int sovia_completion_fd(int fd);
/* Has callback called when something becomes so; NULL: no more, and when that returns none runs but the one that it is called from. EAGAIN.
 * close of the last descriptor does the same. A callback that sets another returns before that runs. */
int sovia_set_callback(int fd, sovia_callback *callback, void *argument);
/* Bytes from which on SOVIA_READABLE and SOVIA_WRITABLE are so, or, where these are more, a full window of bytes and half a window of room;
 * 1 and 1 at first. EINVAL for 0. */
int sovia_set_watermarks(int fd, size_t receive, size_t send);

#ifdef __cplusplus
}
#endif

/* As the library has them. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define SOVIA_ASSERT(condition) static_assert(condition, #condition)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define SOVIA_ASSERT(condition) _Static_assert(condition, #condition)
#else
#define SOVIA_ASSERT_AT(condition, line) typedef char sovia_assert_##line[(condition) ? 1 : -1]
#define SOVIA_ASSERT_ON(condition, line) SOVIA_ASSERT_AT(condition, line)
#define SOVIA_ASSERT(condition) SOVIA_ASSERT_ON(condition, __LINE__)
#endif
SOVIA_ASSERT(sizeof(void *) == 8);
SOVIA_ASSERT(sizeof(struct sovia_segment) == 16);
SOVIA_ASSERT(offsetof(struct sovia_segment, length) == 8);
SOVIA_ASSERT(offsetof(struct sovia_segment, region) == 12);
SOVIA_ASSERT(sizeof(struct sovia_remote) == 24);
SOVIA_ASSERT(offsetof(struct sovia_remote, length) == 8);
SOVIA_ASSERT(offsetof(struct sovia_remote, region) == 16);
SOVIA_ASSERT(offsetof(struct sovia_remote, access) == 20);
SOVIA_ASSERT(sizeof(struct sovia_completion) == 24);
SOVIA_ASSERT(offsetof(struct sovia_completion, op) == 8);
SOVIA_ASSERT(offsetof(struct sovia_completion, error) == 12);
SOVIA_ASSERT(offsetof(struct sovia_completion, length) == 16);

#endif
