// Linked into every program by `-Wl,--wrap=socket` for the runs over SOVIA's packets: what the program opens as a TCP socket
// is a socket of type SOCK_VIA. The sources say nothing of it, and the library changes nothing by itself.
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOCK_VIA = 15, SOCK_FLAGS = SOCK_NONBLOCK | SOCK_CLOEXEC };

int __real_socket(int domain, int type, int protocol);

// For the harness: the kernel knows no such type, so that what comes of it is a VI.
static void trace(void) {
    const char *path = getenv("SOVIA_TRACE_UPGRADE");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0) return;
    if (write(fd, "via\n", 4) != 4) abort();
    close(fd);
}

int __wrap_socket(int domain, int type, int protocol) {
    int is_ip = domain == AF_INET || domain == AF_INET6;
    if (!is_ip || (type & ~SOCK_FLAGS) != SOCK_STREAM) return __real_socket(domain, type, protocol);
    if (protocol == IPPROTO_TCP) protocol = 0;
    // Before the socket, for its number is to be the one that it would have.
    trace();
    return __real_socket(domain, SOCK_VIA | (type & SOCK_FLAGS), protocol);
}
