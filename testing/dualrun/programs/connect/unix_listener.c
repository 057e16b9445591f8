// A Unix listener and its clients, by an abstract name.
#include "dual.h"
#include <stddef.h>
#include <sys/un.h>

static void end(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = OK(socket(AF_UNIX, SOCK_STREAM, 0));
    if (is_client) {
        socklen_t length = offsetof(struct sockaddr_un, sun_path) + 1;
        length += snprintf(name.sun_path + 1, 60, "dualrun-%ld", (long)await_number());
        OK(connect(fd, (struct sockaddr *)&name, length));
    } else {
        socklen_t length = offsetof(struct sockaddr_un, sun_path) + 1;
        length += snprintf(name.sun_path + 1, 60, "dualrun-%d", getpid());
        OK(bind(fd, (struct sockaddr *)&name, length));
        OK(listen(fd, 5));
        tell_number(getpid());
        fd = OK(accept(fd, NULL, NULL));
    }
    if (is_client) send_filled(fd, 300000);
    recv_filled(fd, 300000);
    if (!is_client) send_filled(fd, 300000);
    OK(shutdown(fd, SHUT_WR));
    recv_to_end(fd);
}

SERVER_AND_CLIENT(end, end)
