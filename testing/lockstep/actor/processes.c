// What concerns processes: how an actor meets the controller, and fork, exec, spawn, exit, and descriptors that are passed on.
#include "actor.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>

extern char **environ;

// Out of the way of the session's own, whose numbers are low.
enum { CONTROL = 800, TAKES = 801 };

static char place[100], name[16];

static struct sockaddr_un address(const char *of) {
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    snprintf(where.sun_path, sizeof where.sun_path, "%s%s%s", place, of ? "." : "", of ? of : "");
    return where;
}

static void lift(int fd, int to) {
    if (dup3(fd, to, O_CLOEXEC) < 0) exit(3);
    close(fd);
}

void meet(const char *meets_at, const char *as) {
    snprintf(place, sizeof place, "%s", meets_at);
    snprintf(name, sizeof name, "%s", as);
    signal(SIGCHLD, SIG_IGN);
    struct sockaddr_un mine = address(as), controller = address(NULL);
    int takes = socket(AF_UNIX, SOCK_DGRAM, 0);
    unlink(mine.sun_path);
    if (takes < 0 || bind(takes, (struct sockaddr *)&mine, sizeof mine) < 0) exit(3);
    lift(takes, TAKES);
    int control = socket(AF_UNIX, SOCK_STREAM, 0);
    if (control < 0 || connect(control, (struct sockaddr *)&controller, sizeof controller) < 0) exit(3);
    lift(control, CONTROL);
    answer("hello %s %d", name, (int)getpid());
}

void answer(const char *format, ...) {
    char text[2048];
    va_list rest;
    va_start(rest, format);
    int length = vsnprintf(text, sizeof text - 1, format, rest);
    va_end(rest);
    text[length++] = '\n';
    // The controller goes only when the session is over.
    if (write(CONTROL, text, (size_t)length) != length) _exit(0);
}

char *next_command(void) {
    static char line[4096];
    size_t length = 0;
    while (length + 1 < sizeof line) {
        ssize_t one = read(CONTROL, line + length, 1);
        if (one <= 0) _exit(0);
        if (line[length++] == '\n') break;
    }
    line[length] = 0;
    return line;
}

// fork NAME
static void fork_actor(char **words) {
    pid_t child = fork();
    if (child == 0) {
        close(CONTROL);
        close(TAKES);
        char at[sizeof place];
        snprintf(at, sizeof at, "%s", place);
        meet(at, words[1]);
        return;
    }
    answer_result(child < 0 ? -1 : 0);
}

// exec, spawn NAME: this program again, with the descriptors that are in slots.
static void start(char **words, int count) {
    static char texts[SLOTS][12];
    char *arguments[SLOTS + 4] = {"actor", place, count > 1 ? words[1] : name};
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i] < 0) strcpy(texts[i], "-");
        else snprintf(texts[i], sizeof texts[i], "%d", slots[i]);
        arguments[3 + i] = texts[i];
    }
    if (count == 1) {
        execv("/proc/self/exe", arguments);
        answer_result(-1);
        return;
    }
    pid_t child;
    int because = posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ);
    errno = because;
    answer_result(because ? -1 : 0);
}

// pass SLOT NAME
static void pass(char **words) {
    struct sockaddr_un to = address(words[2]);
    int fd = slot_of(words[1]);
    char byte = 0;
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &piece, .msg_iovlen = 1,
                             .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    answer_result(sendmsg(TAKES, &message, 0));
}

// take SLOT
static void take(char **words) {
    int fd = -1;
    char byte;
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof fd)];
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    if (recvmsg(TAKES, &message, MSG_DONTWAIT) < 0) {
        answer_result(-1);
        return;
    }
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header) memcpy(&fd, CMSG_DATA(header), sizeof fd);
    fill_slot(words[1], fd);
}

int processes_command(char **words, int count) {
    if (!strcmp(words[0], "fork") && count == 2) fork_actor(words);
    else if (!strcmp(words[0], "exec") && count == 1) start(words, count);
    else if (!strcmp(words[0], "spawn") && count == 2) start(words, count);
    else if (!strcmp(words[0], "pass") && count == 3) pass(words);
    else if (!strcmp(words[0], "take") && count == 2) take(words);
    else if (!strcmp(words[0], "exit")) exit(0);
    else if (!strcmp(words[0], "_exit")) _exit(0);
    else return 0;
    return 1;
}
