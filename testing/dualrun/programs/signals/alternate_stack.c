// A handler on a stack of its own that is not large receives and waits there: nothing is written below.
#include "dual.h"
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/select.h>

enum { BELOW = 65536, ROOM = 5000 };
static int connection;
static char got[8];

static void handler(int number) {
    (void)number;
    fd_set in;
    FD_ZERO(&in);
    FD_SET(connection, &in);
    struct timeval time = {.tv_sec = 20};
    int ready = select(connection + 1, &in, NULL, NULL, &time);
    struct pollfd entry = {.fd = connection, .events = POLLIN};
    ready += poll(&entry, 1, 20000);
    got[0] = (char)('0' + ready);
    if (recv(connection, got + 1, 1, 0) != 1) got[1] = '-';
}

static void subject(int fd) {
    connection = fd;
    // Functions are looked up at their first call.
    handler(0);
    say("%s", got);
    // What the kernel puts there depends on the CPU.
    size_t size = getauxval(AT_MINSIGSTKSZ) + ROOM;
    unsigned char *pages = mmap(NULL, BELOW + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) die(__LINE__, "mmap");
    memset(pages, 0x5a, BELOW);
    stack_t stack = {.ss_sp = pages + BELOW, .ss_size = size};
    OK(sigaltstack(&stack, NULL));
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    OK(sigaction(SIGUSR1, &action, NULL));
    for (int i = 0; i < 3; i++) {
        OK(raise(SIGUSR1));
        say("%s", got);
    }
    int below = 0;
    for (int i = 0; i < BELOW; i++) below += pages[i] != 0x5a;
    say("below the stack: %d", below);
}

static void partner(int fd) {
    send_text(fd, "abcd");
    recv_to_end(fd);
}

SUBJECT_AND_PARTNER(subject, partner)
