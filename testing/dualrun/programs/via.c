// Linked into every program by `-Wl,--wrap=socket,--wrap=getsockopt` for the runs over SOVIA's packets: what the program opens as a TCP
// socket is a socket of type SOCK_VIA, and says what the program asked for. The sources say nothing of it, and the library changes nothing by itself.
#include "instruction.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { SOCK_VIA = 15, SOCK_FLAGS = SOCK_NONBLOCK | SOCK_CLOEXEC };

int __real_socket(int domain, int type, int protocol);
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *length);

// For the harness: the kernel knows no such type, so that what comes of it is a VI.
static void trace(void) {
    const char *path = getenv("SOVIA_TRACE_UPGRADE");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0) return;
    // The number may be one that the program has closed by such an instruction.
    if (past(SYS_write, fd, (long)"via\n", 4) != 4) abort();
    past(SYS_close, fd, 0, 0);
}

int __wrap_socket(int domain, int type, int protocol) {
    int is_ip = domain == AF_INET || domain == AF_INET6;
    if (!is_ip || (type & ~SOCK_FLAGS) != SOCK_STREAM) return __real_socket(domain, type, protocol);
    if (protocol == IPPROTO_TCP) protocol = 0;
    // Before the socket, for its number is to be the one that it would have.
    trace();
    return __real_socket(domain, SOCK_VIA | (type & SOCK_FLAGS), protocol);
}

// What a socket is says what was asked for: SOCK_VIA, which has no protocol of a number. The program asked for another.
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *length) {
    int result = __real_getsockopt(fd, level, name, value, length);
    int is_kind = level == SOL_SOCKET && (name == SO_TYPE || name == SO_PROTOCOL);
    if (result < 0 || !is_kind || *length != sizeof(int)) return result;
    int type = 0;
    if (__real_getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){sizeof type}) < 0) abort();
    if (type == SOCK_VIA) *(int *)value = name == SO_TYPE ? SOCK_STREAM : IPPROTO_TCP;
    return result;
}
