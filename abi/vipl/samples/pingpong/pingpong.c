/*
 * pingpong - how long a message takes, by size, polling and blocking.
 *
 * The client sends, the server sends back; half of a round trip is one way.  A message with immediate data says goodbye.
 */
#include "../common.h"

#include <sched.h>

enum { LIMIT_MS = 10000, WARM_UP = 100, SIZES_MAX = 32 };

struct options {
    const char *device, *host, *name, *sizes;
    long        count, block;
    int         poll, wait, pin;
};

/* One side of the connection: two receives, each with its buffer, and one buffer to send from. */
struct side {
    struct nic    nic;
    struct memory descriptors;
    struct memory buffers;
    VIP_VI_HANDLE vi;
    VIP_UINT32    size_max;
    size_t        taken; /* the receive whose message has been read and whose room is not posted again yet, or 0 */
    int           polling;
};

enum { SEND = 0, RECVS = 2, DESCRIPTORS = RECVS + 1 };

static VIP_UINT8 *buffer(const struct side *side, size_t index)
{
    return side->buffers.at + index * side->size_max;
}

static void post_recv(struct side *side, size_t index)
{
    VIP_DESCRIPTOR *descriptor = descriptor_at(&side->descriptors, index);

    descriptor_fill(descriptor, VIP_CONTROL_OP_SENDRECV, buffer(side, index), side->buffers.handle, side->size_max);
    MUST(VipPostRecv(side->vi, descriptor, side->descriptors.handle));
}

static void open_side(struct side *side, const struct options *options)
{
    size_t i;

    memset(side, 0, sizeof *side);
    nic_open(&side->nic, options->device);
    side->size_max = (VIP_UINT32)side->nic.attributes.MaxTransferSize;
    memory_get(&side->nic, &side->descriptors, DESCRIPTORS * sizeof(VIP_DESCRIPTOR), VIP_FALSE);
    memory_get(&side->nic, &side->buffers, (size_t)DESCRIPTORS * side->size_max, VIP_FALSE);
    side->vi = vi_create(&side->nic, NULL, NULL, VIP_FALSE);
    for (i = 1; i < DESCRIPTORS; i++)
        post_recv(side, i);
}

static void close_side(struct side *side)
{
    vi_close(side->vi);
    memory_put(&side->nic, &side->buffers);
    memory_put(&side->nic, &side->descriptors);
    nic_close(&side->nic);
}

static void send_bytes(struct side *side, VIP_UINT16 control, VIP_UINT32 length)
{
    VIP_DESCRIPTOR *done = descriptor_at(&side->descriptors, SEND);
    VIP_RETURN      result;

    descriptor_fill(done, control, buffer(side, SEND), side->buffers.handle, length);
    MUST(VipPostSend(side->vi, done, side->descriptors.handle));
    if (side->polling)
        while ((result = VipSendDone(side->vi, &done)) == VIP_NOT_DONE)
            continue;
    else
        result = VipSendWait(side->vi, VIP_INFINITE, &done);
    completed(result, &done);
}

static VIP_DESCRIPTOR *receive(struct side *side)
{
    VIP_DESCRIPTOR *done;
    VIP_RETURN      result;

    if (side->polling)
        while ((result = VipRecvDone(side->vi, &done)) == VIP_NOT_DONE)
            continue;
    else
        result = VipRecvWait(side->vi, VIP_INFINITE, &done);
    return completed(result, &done);
}

static int by_value(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

/* There and back. What has arrived makes room while the next message is on its way, so that neither waits for it. */
static void round_trip(struct side *side, VIP_UINT32 size)
{
    VIP_DESCRIPTOR *done;

    send_bytes(side, VIP_CONTROL_OP_SENDRECV, size);
    if (side->taken)
        post_recv(side, side->taken);
    done = receive(side);
    NEED(done->CS.Length == size);
    side->taken = (size_t)(done - descriptor_at(&side->descriptors, 0));
}

/* One-way microseconds, the median block of count round trips. */
static double measure(struct side *side, VIP_UINT32 size, const struct options *options)
{
    size_t  block = (size_t)options->block;
    size_t  blocks = ((size_t)options->count + block - 1) / block;
    double *times = malloc(blocks * sizeof *times);
    double  median;
    size_t  i, j;

    if (!times)
        die("no memory for %zu times", blocks);
    for (i = 0; i < WARM_UP; i++)
        round_trip(side, size);
    for (i = 0; i < blocks; i++) {
        double start = now_us();

        for (j = 0; j < block; j++)
            round_trip(side, size);
        times[i] = (now_us() - start) / 2 / (double)block;
    }
    qsort(times, blocks, sizeof *times, by_value);
    median = blocks % 2 ? times[blocks / 2] : (times[blocks / 2 - 1] + times[blocks / 2]) / 2;
    free(times);
    return median;
}

static size_t parse_sizes(const char *text, VIP_UINT32 limit, VIP_UINT32 sizes[SIZES_MAX])
{
    size_t count = 0;

    while (*text && count < SIZES_MAX) {
        char         *end;
        unsigned long size = strtoul(text, &end, 10);

        if (end == text || (*end != ',' && *end != '\0'))
            die("not a list of sizes: '%s'", text);
        if (size > limit)
            die("the device transfers at most %u bytes at once, not %lu", (unsigned)limit, size);
        sizes[count++] = (VIP_UINT32)size;
        text = *end ? end + 1 : end;
    }
    return count;
}

static int client(const struct options *options)
{
    struct side   side;
    union address local, remote;
    VIP_UINT32    sizes[SIZES_MAX];
    VIP_RETURN    result;
    size_t        i, count;

    open_side(&side, options);
    count = parse_sizes(options->sizes, side.size_max, sizes);
    address_of(&side.nic, &local, NULL, "ping");
    address_of(&side.nic, &remote, options->host, options->name);
    result = vi_request(side.vi, &local, &remote, LIMIT_MS);
    if (result != VIP_SUCCESS)
        die("cannot connect to '%s': %s", options->name, result_name(result));

    printf("%10s%s%s   median one-way us of %ld\n", "bytes", options->poll ? "      poll" : "", options->wait ? "      wait" : "",
           options->count);
    for (i = 0; i < count; i++) {
        printf("%10u", (unsigned)sizes[i]);
        side.polling = 1;
        if (options->poll)
            printf("%10.3f", measure(&side, sizes[i], options));
        side.polling = 0;
        if (options->wait)
            printf("%10.3f", measure(&side, sizes[i], options));
        putchar('\n');
        fflush(stdout);
    }

    send_bytes(&side, VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE, 0);
    NEED(receive(&side)->CS.Status & VIP_STATUS_IMMEDIATE);
    close_side(&side);
    return 0;
}

/* The server blocks unless told to poll only: the client's figures then hold the cost of waking the server too. */
static int server(const struct options *options)
{
    struct side     side;
    union address   local;
    VIP_DESCRIPTOR *done;
    VIP_UINT16      control;

    open_side(&side, options);
    side.polling = !options->wait;
    address_of(&side.nic, &local, NULL, options->name);
    vi_serve(&side.nic, side.vi, &local);
    do {
        VIP_UINT32 length;
        size_t     index;

        done = receive(&side);
        index = (size_t)(done - descriptor_at(&side.descriptors, 0));
        length = done->CS.Length;
        control = done->CS.Status & VIP_STATUS_IMMEDIATE ? VIP_CONTROL_IMMEDIATE : 0;
        memcpy(buffer(&side, SEND), buffer(&side, index), length);
        send_bytes(&side, control, length);
        post_recv(&side, index);
    } while (!control);
    vi_await_end(side.vi, LIMIT_MS); /* the client closes first; disconnecting here could overtake the last answer */
    close_side(&side);
    return 0;
}

/* The CPUs that this process may use, one for each side. */
static void pin(int index)
{
    cpu_set_t allowed, one;
    size_t    cpu;

    NEED(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    if (CPU_COUNT(&allowed) < 2)
        die("one CPU only: nothing to pin to");
    for (cpu = 0; !CPU_ISSET(cpu, &allowed) || index-- > 0; cpu++)
        continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    NEED(sched_setaffinity(0, sizeof one, &one) == 0);
}

static int either(int index, const void *context)
{
    const struct options *options = context;

    if (options->pin)
        pin(index);
    return index == 0 ? server(options) : client(options);
}

int main(int argc, char **argv)
{
    static const char words[] = "server|client|--self [options]";
    struct options    options = {"shm", NULL, "pingpong", "0,4,64,256,1024,4096,16384,32768", 1000, 10, 0, 0, 0};
    int               self = 0;
    const struct option known[] = {
        {"device", &options.device, NULL, NULL, "device name (shm)"},
        {"host", &options.host, NULL, NULL, "client: the server's host, for the name service (this host)"},
        {"name", &options.name, NULL, NULL, "discriminator, at most 16 letters (pingpong)"},
        {"sizes", &options.sizes, NULL, NULL, "client: bytes, with commas (0,4,64,256,1024,4096,16384,32768)"},
        {"count", NULL, &options.count, NULL, "client: round trips for each size (1000)"},
        {"block", NULL, &options.block, NULL, "client: round trips between two looks at the clock (10)"},
        {"pin", NULL, NULL, &options.pin, "with --self: each side on a CPU of its own"},
        {"poll", NULL, NULL, &options.poll, "with the Done calls only"},
        {"wait", NULL, NULL, &options.wait, "with the Wait calls only"},
        {"self", NULL, NULL, &self, "start both sides"},
        {NULL, NULL, NULL, NULL, NULL},
    };
    const char *side = arguments(argc, argv, words, known);

    if (options.count == 0 || options.block == 0)
        usage(argv[0], words, known);
    if (!options.poll && !options.wait)
        options.poll = options.wait = 1;
    if (self)
        return !run_sides(2, either, &options);
    if (side && strcmp(side, "server") == 0)
        return server(&options);
    if (side && strcmp(side, "client") == 0)
        return client(&options);
    usage(argv[0], words, known);
}
