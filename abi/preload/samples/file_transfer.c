/* Zero-copy file transfer: the sender posts its mapping of the file, piece by piece, the receiver where it wants it. No byte passes through a buffer of
 * either program or of a socket, and the file's length goes ahead as plain bytes of the same connection.
 *
 *     file_transfer vi|iwarp FILE COPY      two processes of this host */
#define _DEFAULT_SOURCE
#include "common.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Of a message: a segment has 32 bits, and the memory of a region need not be of one message. */
#define PIECE (1u << 30)

static uint32_t piece(uint64_t left)
{
    return left < PIECE ? (uint32_t)left : PIECE;
}

static void give(int fd, const char *path)
{
    struct stat stat;
    struct sovia_segment segment;
    uint64_t length, at;
    char *bytes;
    int file = open(path, O_RDONLY);
    MUST(file);
    MUST(fstat(file, &stat));
    length = (uint64_t)stat.st_size;
    if (write(fd, &length, sizeof length) != sizeof length) exit(1);
    /* Of nothing there is no mapping. */
    if (length > 0) {
        bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
        if (bytes == MAP_FAILED) exit(1);
        MUST(sovia_register(fd, bytes, length, SOVIA_LOCAL, &segment.region));
        for (at = 0; at < length; at += segment.length) {
            segment.address = bytes + at;
            segment.length = piece(length - at);
            MUST(sovia_post_send(fd, &segment, 1, 1));
            done(fd);
        }
        MUST(sovia_deregister(fd, segment.region));
        MUST(munmap(bytes, length));
    }
    MUST(close(file));
}

static void take(int fd, const char *path)
{
    struct sovia_segment segment;
    uint64_t length, at;
    char *bytes;
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    MUST(file);
    if (recv(fd, &length, sizeof length, MSG_WAITALL) != sizeof length) exit(1);
    MUST(ftruncate(file, (off_t)length));
    if (length > 0) {
        bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (bytes == MAP_FAILED) exit(1);
        MUST(sovia_register(fd, bytes, length, SOVIA_WRITE, &segment.region));
        for (at = 0; at < length; at += segment.length) {
            segment.address = bytes + at;
            segment.length = piece(length - at);
            MUST(sovia_post_recv(fd, &segment, 1, 1));
            done(fd);
        }
        MUST(sovia_deregister(fd, segment.region));
        MUST(munmap(bytes, length));
    }
    MUST(close(file));
    printf("%lu bytes\n", (unsigned long)length);
}

int main(int count, char **arguments)
{
    unsigned short port;
    int listener, fd, status = 1;
    pid_t child;
    if (count != 4) {
        fprintf(stderr, "usage: file_transfer vi|iwarp FILE COPY\n");
        return 2;
    }
    listener = listening(&port);
    child = fork();
    MUST(child);
    if (child == 0) {
        fd = calling(port);
        convert(fd, mode_of(arguments[1]));
        give(fd, arguments[2]);
        MUST(close(fd));
        exit(0);
    }
    MUST(fd = accept(listener, NULL, NULL));
    convert(fd, mode_of(arguments[1]));
    take(fd, arguments[3]);
    MUST(close(fd));
    MUST(waitpid(child, &status, 0));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
