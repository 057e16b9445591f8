/*
 * test.h - how the C tests report, fork and give up.
 *
 * One line per statement of the conformance checklist: "ok 204 what" or "not ok 204 what".  Exit status 0 when all are ok.
 * The device is VIPL_DEVICE or "shm".  No program runs longer than LIMIT_S seconds.
 */
#ifndef SOVIA_VIPL_TEST_H
#define SOVIA_VIPL_TEST_H

#include "../../samples/common.h"

#include <pthread.h>
#include <sys/mman.h>

enum { LIMIT_S = 60, SOON_MS = 20000 };

static int test_failed;

__attribute__((format(printf, 3, 4))) static inline void ok(int holds, int statement, const char *format, ...)
{
    va_list values;

    printf("%sok %d ", holds ? "" : "not ", statement);
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
    fflush(stdout);
    if (!holds)
        test_failed = 1;
}

/* One statement made of many checks: the failing ones are printed, the verdict comes at the end. */
struct verdict {
    int         statement;
    int         checks, failures;
    const char *what;
};

__attribute__((format(printf, 3, 4))) static inline void check(struct verdict *verdict, int holds, const char *format, ...)
{
    va_list values;

    verdict->checks++;
    if (holds)
        return;
    verdict->failures++;
    printf("# %d: ", verdict->statement);
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
}

static inline void conclude(const struct verdict *verdict)
{
    ok(verdict->checks > 0 && verdict->failures == 0, verdict->statement, "%s (%d of %d checks)", verdict->what,
       verdict->checks - verdict->failures, verdict->checks);
}

/* The call must return this result; otherwise the line says which it was. */
static inline void check_result(struct verdict *verdict, VIP_RETURN expected, VIP_RETURN result, const char *call)
{
    check(verdict, result == expected, "%s: %s instead of %s", call, result_name(result), result_name(expected));
}

#define RETURNS(verdict, expected, call) check_result((verdict), (expected), (call), #call)

/* A test that hangs has failed. */
static inline void on_alarm(int signal_number)
{
    static const char text[] = "not ok 0 the test did not end in time\n";
    ssize_t           written = write(STDOUT_FILENO, text, sizeof text - 1);

    (void)signal_number;
    _exit(written > 0 ? 1 : 2);
}

static inline void limit_time(void)
{
    signal(SIGALRM, on_alarm);
    alarm(LIMIT_S);
}

/* First call of main: from here on the program ends.  The tests choose strictness by device name. */
static inline const char *test_start(void)
{
    const char *device = getenv("VIPL_DEVICE");

    setvbuf(stdout, NULL, _IOLBF, 0);
    limit_time();
    unsetenv("SOVIA_VIPL_STRICT");
    return device && *device ? device : "shm";
}

static inline const char *strict_name(const char *device)
{
    static char name[128];

    snprintf(name, sizeof name, "%s,strict", device);
    return name;
}

/* A discriminator that no test running beside this one uses: the process that starts the others, and a letter. */
static inline const char *test_name(char *text, size_t size, pid_t owner, char letter)
{
    snprintf(text, size, "%c%ld", letter, (long)owner);
    return text;
}

/* A side of a conversation, in a process of its own. */
struct sides {
    const char        *device;
    pid_t              owner; /* for test_name */
    int                index; /* 0 is the server */
    pthread_barrier_t *barrier;
    int (*const *run)(const struct sides *);
};

/* Returns when all sides have come here: what MPI was to the programs of the time. */
static inline void all_here(const struct sides *sides)
{
    int result = pthread_barrier_wait(sides->barrier);

    NEED(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
}

static inline int run_one(int index, const void *context)
{
    struct sides sides = *(const struct sides *)context;

    limit_time();
    sides.index = index;
    return sides.run[index](&sides);
}

static inline int run_all(const char *device, int count, int (*const *run)(const struct sides *))
{
    struct sides          sides = {device, getpid(), 0, NULL, run};
    pthread_barrierattr_t shared;
    int                   succeeded;

    sides.barrier = mmap(NULL, sizeof *sides.barrier, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    NEED(sides.barrier != MAP_FAILED);
    NEED(pthread_barrierattr_init(&shared) == 0);
    NEED(pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) == 0);
    NEED(pthread_barrier_init(sides.barrier, &shared, (unsigned)count) == 0);
    succeeded = run_sides(count, run_one, &sides);
    munmap(sides.barrier, sizeof *sides.barrier);
    return succeeded;
}

static inline int run_pair(const char *device, int (*server)(const struct sides *), int (*client)(const struct sides *))
{
    int (*const run[])(const struct sides *) = {server, client};

    return run_all(device, 2, run);
}

/* Two VIs of one process, connected to each other: the client's request needs a thread of its own. */
struct requesting {
    VIP_VI_HANDLE  vi;
    union address *local, *remote;
    VIP_ULONG      timeout_ms;
    VIP_RETURN     result;
    pthread_t      thread;
};

static inline void *requesting_run(void *argument)
{
    struct requesting *requesting = argument;
    VIP_VI_ATTRIBUTES  attributes;
    double             end = now_us() + SOON_MS * 1e3;

    do {
        requesting->result = VipConnectRequest(requesting->vi, &requesting->local->net, &requesting->remote->net,
                                               requesting->timeout_ms, &attributes);
        if (requesting->result == VIP_NO_MATCH)
            pause_ms(1);
    } while (requesting->result == VIP_NO_MATCH && now_us() < end);
    return NULL;
}

static inline void request_start(struct requesting *requesting, VIP_VI_HANDLE vi, union address *local, union address *remote,
                                 VIP_ULONG timeout_ms)
{
    requesting->vi = vi;
    requesting->local = local;
    requesting->remote = remote;
    requesting->timeout_ms = timeout_ms;
    NEED(pthread_create(&requesting->thread, NULL, requesting_run, requesting) == 0);
}

static inline VIP_RETURN request_end(struct requesting *requesting)
{
    NEED(pthread_join(requesting->thread, NULL) == 0);
    return requesting->result;
}

static inline VIP_CONN_HANDLE await_request(struct nic *nic, union address *local, VIP_ULONG timeout_ms)
{
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE   connection;
    union address     remote;

    memset(&remote, 0, sizeof remote);
    MUST(VipConnectWait(nic->handle, &local->net, timeout_ms, &remote.net, &attributes, &connection));
    return connection;
}

static inline void connect_pair(struct nic *nic, VIP_VI_HANDLE server, VIP_VI_HANDLE client, char letter)
{
    struct requesting requesting;
    union address     local, remote;
    char              name[16];

    address_of(nic, &local, NULL, "client");
    address_of(nic, &remote, NULL, test_name(name, sizeof name, getpid(), letter));
    request_start(&requesting, client, &local, &remote, SOON_MS);
    MUST(VipConnectAccept(await_request(nic, &remote, SOON_MS), server));
    MUST(request_end(&requesting));
}

#endif
