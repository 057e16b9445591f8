// What moves bytes: send and recv in all their forms.
#include "actor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

static unsigned char bytes[MOST];

static int flags_of(const char *letters) {
    int flags = MSG_NOSIGNAL;
    for (; *letters; letters++) switch (*letters) {
        case 'd': flags |= MSG_DONTWAIT; break;
        case 'p': flags |= MSG_PEEK; break;
        case 'w': flags |= MSG_WAITALL; break;
        case 'o': flags |= MSG_OOB; break;
        case 't': flags |= MSG_TRUNC; break;
        default: break;
        }
    return flags;
}

// A third, a third, and the rest.
static void three(struct iovec *pieces, size_t count) {
    size_t third = count / 3;
    pieces[0] = (struct iovec){bytes, third};
    pieces[1] = (struct iovec){bytes + third, third};
    pieces[2] = (struct iovec){bytes + 2 * third, count - 2 * third};
}

static ssize_t by_file(int fd, size_t count) {
    int file = memfd_create("bytes", MFD_CLOEXEC);
    if (file < 0 || write(file, bytes, count) != (ssize_t)count) return -1;
    off_t offset = 0;
    ssize_t sent = sendfile(fd, file, &offset, count);
    int because = errno;
    close(file);
    errno = because;
    return sent;
}

static ssize_t by_pipe_to(int fd, size_t count) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0 || write(ends[1], bytes, count) != (ssize_t)count) return -1;
    ssize_t sent = splice(ends[0], NULL, fd, NULL, count, 0);
    int because = errno;
    close(ends[0]), close(ends[1]);
    errno = because;
    return sent;
}

static ssize_t by_pipe_from(int fd, size_t count) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) return -1;
    ssize_t got = splice(fd, NULL, ends[1], NULL, count, SPLICE_F_NONBLOCK);
    int because = errno;
    if (got > 0 && read(ends[0], bytes, (size_t)got) != got) return -1;
    close(ends[0]), close(ends[1]);
    errno = because;
    return got;
}

// send SLOT KEY OFFSET COUNT CALL FLAGS; with `m` in two pieces, the first with MSG_MORE
static void send_bytes(char **words) {
    int fd = slot_of(words[1]);
    size_t count = strtoul(words[4], NULL, 10);
    if (count > MOST) count = MOST;
    make_bytes(bytes, (unsigned)atoi(words[2]), strtoul(words[3], NULL, 10), count);
    const char *call = words[5];
    // The kernel holds it back until more comes, which it does here: what would show in between is the kernel's alone.
    if (strchr(words[6], 'm') && count > 1) {
        ssize_t first = send(fd, bytes, count - 1, MSG_MORE | MSG_NOSIGNAL);
        ssize_t last = first == (ssize_t)count - 1 ? send(fd, bytes + count - 1, 1, MSG_NOSIGNAL) : 0;
        answer_result(first < 0 || last < 0 ? -1 : first + last);
        return;
    }
    int flags = flags_of(words[6]);
    struct iovec pieces[3];
    three(pieces, count);
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 3};
    long result = -1;
    if (!strcmp(call, "send")) result = send(fd, bytes, count, flags);
    else if (!strcmp(call, "write")) result = write(fd, bytes, count);
    else if (!strcmp(call, "writev")) result = writev(fd, pieces, 3);
    else if (!strcmp(call, "sendto")) result = sendto(fd, bytes, count, flags, NULL, 0);
    else if (!strcmp(call, "sendmsg")) result = sendmsg(fd, &message, flags);
    else if (!strcmp(call, "sendmmsg")) {
        struct mmsghdr messages[1] = {{.msg_hdr = message}};
        result = sendmmsg(fd, messages, 1, flags);
        if (result == 1) result = messages[0].msg_len;
    } else if (!strcmp(call, "sendfile")) result = by_file(fd, count);
    else if (!strcmp(call, "splice")) result = by_pipe_to(fd, count);
    answer_result(result);
}

// recv SLOT COUNT CALL FLAGS [SUM of what these bytes follow]
static void receive_bytes(char **words) {
    int fd = slot_of(words[1]);
    size_t count = strtoul(words[2], NULL, 10);
    if (count > MOST) count = MOST;
    const char *call = words[3];
    int flags = flags_of(words[4]) & ~MSG_NOSIGNAL, told = 0;
    struct iovec pieces[3];
    three(pieces, count);
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 3};
    long result = -1;
    if (!strcmp(call, "recv")) result = recv(fd, bytes, count, flags);
    else if (!strcmp(call, "read")) result = read(fd, bytes, count);
    else if (!strcmp(call, "readv")) result = readv(fd, pieces, 3);
    else if (!strcmp(call, "recvfrom")) result = recvfrom(fd, bytes, count, flags, NULL, NULL);
    else if (!strcmp(call, "recvmsg")) {
        result = recvmsg(fd, &message, flags);
        told = message.msg_flags & ~MSG_CMSG_CLOEXEC;
    } else if (!strcmp(call, "recvmmsg")) {
        struct mmsghdr messages[1] = {{.msg_hdr = message}};
        result = recvmmsg(fd, messages, 1, flags, NULL);
        told = messages[0].msg_hdr.msg_flags;
        if (result == 1) result = messages[0].msg_len;
    } else if (!strcmp(call, "splice")) result = by_pipe_from(fd, count);
    if (result < 0)
        answer_result(result);
    else if (flags & MSG_TRUNC)
        answer("%ld", result);
    else
        answer("%ld %08x %x", result, digest(words[5] ? (uint32_t)strtoul(words[5], NULL, 16) : 2166136261u, bytes, (size_t)result), told);
}

static ssize_t all(int fd, size_t count, int sends) {
    for (size_t done = 0; done < count;) {
        ssize_t one = sends ? send(fd, bytes + done, count - done, MSG_NOSIGNAL) : recv(fd, bytes + done, count - done, 0);
        if (one <= 0) return -1;
        done += (size_t)one;
    }
    return 0;
}

// warm SLOT client|server: so much to and fro that the connection is worth it.
static void warm(char **words) {
    int fd = slot_of(words[1]), first = !strcmp(words[2], "client");
    enum { TURNS = 64, LONG = MOST };
    int failed = 0;
    for (int i = 0; i < TURNS && !failed; i++) failed = all(fd, 64, first) < 0 || all(fd, 64, !first) < 0;
    for (int i = 0; i < 2 && !failed; i++) failed = all(fd, LONG, first == !i) < 0;
    answer_result(failed ? -1 : 0);
}

int bytes_command(char **words, int count) {
    if (!strcmp(words[0], "send") && count == 7) send_bytes(words);
    else if (!strcmp(words[0], "recv") && count >= 5) receive_bytes(words);
    else if (!strcmp(words[0], "warm") && count == 3) warm(words);
    else return 0;
    return 1;
}
