/*
 * common.h - what the samples and the C tests share: arguments, errors, memory, connecting, closing.
 * Include it first.  Every function ends the process with a message when a call fails, unless it says that it returns a result.
 */
#ifndef SOVIA_SAMPLES_COMMON_H
#define SOVIA_SAMPLES_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vipl.h>

/* Errors */

static inline const char *result_name(VIP_RETURN result)
{
    static const char *const names[] = {
        "VIP_SUCCESS",           "VIP_NOT_DONE",        "VIP_INVALID_PARAMETER",
        "VIP_ERROR_RESOURCE",    "VIP_TIMEOUT",         "VIP_REJECT",
        "VIP_INVALID_RELIABILITY_LEVEL", "VIP_INVALID_MTU", "VIP_INVALID_QOS",
        "VIP_INVALID_PTAG",      "VIP_INVALID_RDMAREAD", "VIP_DESCRIPTOR_ERROR",
        "VIP_INVALID_STATE",     "VIP_ERROR_NAMESERVICE", "VIP_NO_MATCH",
        "VIP_NOT_REACHABLE",     "VIP_ERROR_NOT_SUPPORTED",
    };
    size_t index = (size_t)result;

    return index < sizeof names / sizeof names[0] ? names[index] : "an unknown VIP_RETURN";
}

__attribute__((noreturn, format(printf, 1, 2))) static inline void die(const char *format, ...)
{
    va_list values;

    fflush(stdout);
    va_start(values, format);
    fprintf(stderr, "[%ld] ", (long)getpid());
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    exit(1);
}

/* The call must succeed. */
#define MUST(call)                                                                                                   \
    do {                                                                                                             \
        VIP_RETURN must_result = (call);                                                                             \
        if (must_result != VIP_SUCCESS)                                                                              \
            die("%s:%d: %s: %s", __FILE__, __LINE__, #call, result_name(must_result));                               \
    } while (0)

/* The condition must hold. */
#define NEED(condition)                                                                                              \
    do {                                                                                                             \
        if (!(condition))                                                                                            \
            die("%s:%d: not so: %s", __FILE__, __LINE__, #condition);                                                \
    } while (0)

/* A peer that closes is seen as a lost connection; the samples learn of it from their descriptors.  Anything else is fatal. */
static inline void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    (void)context;
    if (error->ErrorCode != VIP_ERROR_CONN_LOST)
        die("asynchronous error %d on resource %d", (int)error->ErrorCode, (int)error->ResourceCode);
}

/* Time */

static inline double now_us(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static inline void pause_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        continue;
}

/*
 * Runs the sides of a conversation, each in a process of its own that has made no VIPL call before: handles do not survive fork.
 * When one fails, or this process ends, the others are ended too.  Returns whether all ended with 0.
 */
static inline int run_sides(int count, int (*side)(int index, const void *context), const void *context)
{
    enum { SIDES_MAX = 128 };
    pid_t children[SIDES_MAX];
    int   i, left, failed = 0;

    NEED(count <= SIDES_MAX);
    fflush(NULL);
    for (i = 0; i < count; i++) {
        children[i] = fork();
        NEED(children[i] >= 0);
        if (children[i] == 0) {
            NEED(prctl(PR_SET_PDEATHSIG, SIGTERM) == 0);
            exit(side(i, context));
        }
    }
    for (left = count; left > 0; left--) {
        int   status;
        pid_t ended = wait(&status);

        NEED(ended > 0);
        for (i = 0; i < count; i++)
            if (children[i] == ended)
                children[i] = 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        if (!failed++)
            for (i = 0; i < count; i++)
                if (children[i] > 0)
                    kill(children[i], SIGTERM);
    }
    return !failed;
}

/* Arguments: --name for a switch, --name value for a text or number; everything else is a plain word. */

struct option {
    const char *name;
    const char **text;
    long        *number;
    int         *flag;
    const char *help;
};

__attribute__((noreturn)) static inline void usage(const char *program, const char *words, const struct option *options)
{
    fprintf(stderr, "usage: %s %s\n", program, words);
    for (; options->name; options++)
        fprintf(stderr, "  --%-10s %s\n", options->name, options->help);
    exit(2);
}

/* Returns the plain word, or NULL; options end with one that has no name. */
static inline const char *arguments(int argc, char **argv, const char *words, const struct option *options)
{
    const char *word = NULL;
    int         i;

    for (i = 1; i < argc; i++) {
        const struct option *option = options;
        char                *end;

        if (strncmp(argv[i], "--", 2) != 0) {
            if (word)
                usage(argv[0], words, options);
            word = argv[i];
            continue;
        }
        while (option->name && strcmp(option->name, argv[i] + 2) != 0)
            option++;
        if (!option->name)
            usage(argv[0], words, options);
        if (option->flag) {
            *option->flag = 1;
            continue;
        }
        if (++i == argc)
            usage(argv[0], words, options);
        if (option->text) {
            *option->text = argv[i];
        } else {
            errno = 0;
            *option->number = strtol(argv[i], &end, 10);
            if (errno != 0 || end == argv[i] || *end != '\0' || *option->number < 0)
                usage(argv[0], words, options);
        }
    }
    return word;
}

/* A NIC handle with one protection tag */

struct nic {
    VIP_NIC_HANDLE        handle;
    VIP_NIC_ATTRIBUTES    attributes;
    VIP_PROTECTION_HANDLE ptag;
};

static inline void nic_open(struct nic *nic, const char *device)
{
    VIP_RETURN result = VipOpenNic(device, &nic->handle);

    if (result != VIP_SUCCESS)
        die("cannot open the device '%s': %s", device, result_name(result));
    MUST(VipQueryNic(nic->handle, &nic->attributes));
    MUST(VipCreatePtag(nic->handle, &nic->ptag));
    MUST(VipErrorCallback(nic->handle, NULL, on_error));
}

static inline void nic_close(struct nic *nic)
{
    MUST(VipDestroyPtag(nic->handle, nic->ptag));
    MUST(VipCloseNic(nic->handle));
}

/* Reliable delivery where there is, as programs choose it. */
static inline VIP_RELIABILITY_LEVEL nic_level(const struct nic *nic)
{
    return nic->attributes.ReliabilityLevelSupport & VIP_SERVICE_RELIABLE_DELIVERY ? VIP_SERVICE_RELIABLE_DELIVERY
                                                                                    : VIP_SERVICE_UNRELIABLE;
}

/* Registered memory, aligned for descriptors and zeroed */

struct memory {
    VIP_UINT8     *at;
    size_t         length;
    VIP_MEM_HANDLE handle;
};

static inline void memory_get(struct nic *nic, struct memory *memory, size_t length, VIP_BOOLEAN rdma_write)
{
    VIP_MEM_ATTRIBUTES attributes = {NULL, VIP_FALSE, VIP_FALSE};
    void              *at;

    if (posix_memalign(&at, VIP_DESCRIPTOR_ALIGNMENT, length) != 0)
        die("no memory for %zu bytes", length);
    memset(at, 0, length);
    attributes.Ptag = nic->ptag;
    attributes.EnableRdmaWrite = rdma_write;
    memory->at = at;
    memory->length = length;
    MUST(VipRegisterMem(nic->handle, at, (VIP_ULONG)length, &attributes, &memory->handle));
}

static inline void memory_put(struct nic *nic, struct memory *memory)
{
    MUST(VipDeregisterMem(nic->handle, memory->at, memory->handle));
    free(memory->at);
}

/* Descriptors.  count of them take the first count * 64 bytes of the memory; a buffer of no length has no segment. */

static inline VIP_DESCRIPTOR *descriptor_at(const struct memory *memory, size_t index)
{
    return (VIP_DESCRIPTOR *)(void *)memory->at + index;
}

static inline void descriptor_fill(VIP_DESCRIPTOR *descriptor, VIP_UINT16 control, const void *buffer, VIP_MEM_HANDLE handle,
                                   VIP_UINT32 length)
{
    memset(descriptor, 0, sizeof *descriptor);
    descriptor->CS.Control = control;
    descriptor->CS.Length = length;
    if (length > 0) {
        descriptor->CS.SegCount = 1;
        descriptor->DS[0].Local.Data.AddressBits = (uintptr_t)buffer;
        descriptor->DS[0].Local.Handle = handle;
        descriptor->DS[0].Local.Length = length;
    }
}

static inline void descriptor_fill_rdma(VIP_DESCRIPTOR *descriptor, VIP_UINT16 control, VIP_UINT64 remote,
                                        VIP_MEM_HANDLE remote_handle, const void *buffer, VIP_MEM_HANDLE handle,
                                        VIP_UINT32 length)
{
    descriptor_fill(descriptor, control, buffer, handle, length);
    descriptor->DS[1] = descriptor->DS[0];
    memset(&descriptor->DS[0], 0, sizeof descriptor->DS[0]);
    descriptor->CS.SegCount = (VIP_UINT16)(descriptor->CS.SegCount + 1);
    descriptor->DS[0].Remote.Data.AddressBits = remote;
    descriptor->DS[0].Remote.Handle = remote_handle;
}

/* Addresses: the NIC's own host part, or a named host's, and a text as discriminator */

union address {
    VIP_NET_ADDRESS net;
    VIP_UINT8       bytes[64];
};

static inline void address_of(struct nic *nic, union address *address, const char *host, const char *discriminator)
{
    size_t length = strlen(discriminator);
    size_t host_length = nic->attributes.NicAddressLen;

    NEED(length <= nic->attributes.MaxDiscriminatorLen);
    NEED(offsetof(VIP_NET_ADDRESS, HostAddress) + host_length + length <= sizeof address->bytes);
    memset(address, 0, sizeof *address);
    if (host) {
        char *name = strdup(host);

        NEED(name != NULL);
        MUST(VipNSInit(nic->handle, NULL));
        MUST(VipNSGetHostByName(nic->handle, name, &address->net, 0));
        free(name);
    } else {
        memcpy(address->net.HostAddress, nic->attributes.LocalNicAddress, host_length);
        address->net.HostAddressLen = (VIP_UINT16)host_length;
    }
    address->net.DiscriminatorLen = (VIP_UINT16)length;
    memcpy(address->bytes + offsetof(VIP_NET_ADDRESS, HostAddress) + host_length, discriminator, length);
}

/* Virtual interfaces */

static inline VIP_VI_HANDLE vi_create(struct nic *nic, VIP_CQ_HANDLE send_cq, VIP_CQ_HANDLE recv_cq, VIP_BOOLEAN rdma_write)
{
    VIP_VI_ATTRIBUTES attributes;
    VIP_VI_HANDLE     vi;

    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = nic_level(nic);
    attributes.MaxTransferSize = nic->attributes.MaxTransferSize;
    attributes.Ptag = nic->ptag;
    attributes.EnableRdmaWrite = rdma_write;
    MUST(VipCreateVi(nic->handle, &attributes, send_cq, recv_cq, &vi));
    return vi;
}

/*
 * Connects, asking again while nobody waits there: between two VipConnectWait calls a server is deaf, and it may not have
 * started.  Returns any other result, or VIP_NO_MATCH when limit_ms have gone.
 */
static inline VIP_RETURN vi_request(VIP_VI_HANDLE vi, union address *local, union address *remote, long limit_ms)
{
    VIP_VI_ATTRIBUTES attributes;
    VIP_RETURN        result;
    double            end = now_us() + (double)limit_ms * 1e3;

    while ((result = VipConnectRequest(vi, &local->net, &remote->net, (VIP_ULONG)limit_ms, &attributes)) == VIP_NO_MATCH) {
        if (now_us() > end)
            break;
        pause_ms(1);
    }
    return result;
}

/* Waits for one client and accepts it.  VIP_TIMEOUT from accept means that the client gave up: wait for the next. */
static inline void vi_serve(struct nic *nic, VIP_VI_HANDLE vi, union address *local)
{
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE   connection;
    VIP_RETURN        result;
    union address     remote;

    do {
        memset(&remote, 0, sizeof remote);
        remote.net.HostAddressLen = nic->attributes.NicAddressLen;
        remote.net.DiscriminatorLen = nic->attributes.MaxDiscriminatorLen;
        MUST(VipConnectWait(nic->handle, &local->net, VIP_INFINITE, &remote.net, &attributes, &connection));
        result = VipConnectAccept(connection, vi);
    } while (result == VIP_TIMEOUT);
    MUST(result);
}

/* For completed(VipRecvWait(vi, ms, &done), &done): the descriptor must have come back without error. */
static inline VIP_DESCRIPTOR *completed(VIP_RETURN result, VIP_DESCRIPTOR **descriptor)
{
    if (result == VIP_DESCRIPTOR_ERROR && *descriptor)
        die("a descriptor failed with status %08x", (unsigned)(*descriptor)->CS.Status);
    MUST(result);
    return *descriptor;
}

/* Waits until the peer has disconnected, which flushes the receive that is still posted. */
static inline void vi_await_end(VIP_VI_HANDLE vi, VIP_ULONG limit_ms)
{
    VIP_DESCRIPTOR *done = NULL;
    VIP_RETURN      result = VipRecvWait(vi, limit_ms, &done);

    if (result != VIP_DESCRIPTOR_ERROR || !done)
        die("the peer has not disconnected: %s", result_name(result));
    NEED(done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
}

/* Takes what is left on both queues.  The VI must be idle: then all of it has completed. */
static inline void vi_drain(VIP_VI_HANDLE vi)
{
    VIP_DESCRIPTOR *descriptor;
    VIP_RETURN      result;

    do {
        descriptor = NULL;
        result = VipSendDone(vi, &descriptor);
        NEED(result == VIP_SUCCESS || result == VIP_DESCRIPTOR_ERROR);
    } while (descriptor);
    do {
        descriptor = NULL;
        result = VipRecvDone(vi, &descriptor);
        NEED(result == VIP_SUCCESS || result == VIP_DESCRIPTOR_ERROR);
    } while (descriptor);
}

/* The canonical close. */
static inline void vi_close(VIP_VI_HANDLE vi)
{
    MUST(VipDisconnect(vi));
    vi_drain(vi);
    MUST(VipDestroyVi(vi));
}

#endif
