/* What a child of vfork does with descriptors of its own is no concern of its parent's sockets. */
#define _GNU_SOURCE
#include <fcntl.h>
#include "test.h"

static void echo(int fd, int mode)
{
    char byte;
    convert(fd, mode);
    while (read(fd, &byte, 1) == 1) CHECK(write(fd, &byte, 1) == 1);
}

static void goes_on(int fd)
{
    char byte;
    CHECK(send(fd, "x", 1, MSG_NOSIGNAL) == 1);
    CHECK(recv(fd, &byte, 1, 0) == 1 && byte == 'x');
}

enum { DUPLICATES, CLOSES, CLOSES_ALL, REPLACES, WAYS };

static void start_programs(int fd, int mode)
{
    int way, status, other, free_number;
    pid_t pid;
    convert(fd, mode);
    MUST(other = open("/dev/null", O_RDWR));
    MUST(free_number = dup(other));
    MUST(close(free_number));
    for (way = 0; way < WAYS; way++) {
        MUST(pid = vfork());
        if (pid == 0) {
            switch (way) {
            case DUPLICATES: dup2(fd, free_number); break;
            case CLOSES: close(fd); break;
            case CLOSES_ALL: closefrom(3); break;
            default: dup2(other, fd); break;
            }
            execlp("true", "true", (char *)NULL);
            _exit(1);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        goes_on(fd);
    }
    /* Nothing has come to be the socket here. */
    CHECK(dup2(other, free_number) == free_number);
    CHECK(write(free_number, "no", 2) == 2);
    goes_on(fd);
}

int main(int count, char **arguments)
{
    both(mode_of(count > 1 ? arguments[1] : "vi"), start_programs, echo);
    return 0;
}
