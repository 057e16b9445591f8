/*
 * SOVIA's own sockets: byte streams over Virtual Interfaces, for programs that ask for them by name.
 *
 * Each call is the one of POSIX without the prefix, on sockets of type SOCK_VIA and address family AF_INET. Descriptors are of the
 * kernel's table (fcntl's O_NONBLOCK counts, and sov_close must close them), but poll and select do not know them. A socket is connected over a VI or
 * not at all. Connections belong to the process that made them: a child of fork can only close its copies. No call is a point of cancellation. Environment:
 * SOVIA_PACKET=handler|single|flowctrl|dacks|combine|windowless[,poll|block][,copy|register].
 */
#ifndef SOV_H
#define SOV_H

#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* No type of Linux's has this number. */
#ifndef SOCK_VIA
#define SOCK_VIA 15
#endif

int sov_socket(int domain, int type, int protocol);
int sov_bind(int socket, const struct sockaddr *address, socklen_t address_len);
int sov_listen(int socket, int backlog);
int sov_accept(int socket, struct sockaddr *address, socklen_t *address_len);
int sov_connect(int socket, const struct sockaddr *address, socklen_t address_len);
ssize_t sov_send(int socket, const void *buffer, size_t length, int flags);
ssize_t sov_recv(int socket, void *buffer, size_t length, int flags);
int sov_shutdown(int socket, int how);
int sov_close(int socket);
int sov_setsockopt(int socket, int level, int name, const void *value, socklen_t value_len);
int sov_getsockopt(int socket, int level, int name, void *value, socklen_t *value_len);
int sov_getsockname(int socket, struct sockaddr *address, socklen_t *address_len);
int sov_getpeername(int socket, struct sockaddr *address, socklen_t *address_len);

#ifdef __cplusplus
}
#endif

#endif
