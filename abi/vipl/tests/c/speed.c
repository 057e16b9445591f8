/*
 * speed - what the C layer costs: 8 bytes back and forth, as providers/shm's example pingpong sends them from Rust.
 *
 * One thread is both ends first, which shows the code alone, then two threads on two CPUs.  A test asserts nothing about time;
 * run both beside each other on an idle machine:
 *     speed && cargo run --release -p shm --example pingpong
 * With the word "alone" the first part is all, often enough for a profile.
 */
#include "test.h"

#include <sched.h>

enum { TURNS = 2000, BLOCKS = 200, SIZE = 8 };

struct end {
    struct nic      nic;
    struct memory   memory;
    VIP_VI_HANDLE   vi;
    VIP_DESCRIPTOR *recv, *send;
    VIP_UINT8      *in, *out;
};

static int cpus[2];

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void end_open(struct end *end)
{
    nic_open(&end->nic, "shm");
    memory_get(&end->nic, &end->memory, 4096, VIP_FALSE);
    end->recv = descriptor_at(&end->memory, 0);
    end->send = descriptor_at(&end->memory, 1);
    end->in = end->memory.at + 1024;
    end->out = end->memory.at + 2048;
    end->vi = vi_create(&end->nic, NULL, NULL, VIP_FALSE);
}

static void end_close(struct end *end)
{
    vi_close(end->vi);
    memory_put(&end->nic, &end->memory);
    nic_close(&end->nic);
}

static void post_recv(struct end *end)
{
    MUST(VipPostRecv(end->vi, end->recv, end->memory.handle));
}

static void receive(struct end *end)
{
    VIP_DESCRIPTOR *done;
    VIP_RETURN      result;

    while ((result = VipRecvDone(end->vi, &done)) == VIP_NOT_DONE)
        relax();
    completed(result, &done);
}

static void post_send(struct end *end)
{
    end->send->CS.Length = SIZE;
    MUST(VipPostSend(end->vi, end->send, end->memory.handle));
}

static void sent(struct end *end)
{
    VIP_DESCRIPTOR *done;
    VIP_RETURN      result;

    while ((result = VipSendDone(end->vi, &done)) == VIP_NOT_DONE)
        relax();
    completed(result, &done);
}

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    NEED(pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0);
}

static void find_cpus(void)
{
    cpu_set_t set;
    int       cpu, count = 0;

    NEED(sched_getaffinity(0, sizeof set, &set) == 0);
    for (cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++)
        if (CPU_ISSET((size_t)cpu, &set))
            cpus[count++] = cpu;
    NEED(count > 0);
    if (count == 1)
        cpus[1] = cpus[0];
}

static void connect_ends(struct end *client, struct end *server)
{
    struct requesting requesting;
    union address     local, remote;
    char              name[16];

    address_of(&client->nic, &local, NULL, "client");
    address_of(&server->nic, &remote, NULL, test_name(name, sizeof name, getpid(), 's'));
    request_start(&requesting, client->vi, &local, &remote, SOON_MS);
    MUST(VipConnectAccept(await_request(&server->nic, &remote, SOON_MS), server->vi));
    MUST(request_end(&requesting));
}

static int by_value(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

static void alone(struct end *a, struct end *b)
{
    double best = 1e9;
    int    block, turn;

    pin(cpus[0]);
    for (block = 0; block < BLOCKS; block++) {
        double start = now_us(), turn_ns;

        for (turn = 0; turn < TURNS; turn++) {
            post_recv(b);
            post_send(a);
            sent(a);
            receive(b);
        }
        turn_ns = (now_us() - start) * 1e3 / TURNS;
        best = turn_ns < best ? turn_ns : best;
    }
    printf("%7d bytes alone: %.1f ns\n", SIZE, best);
}

static void *echo(void *argument)
{
    struct end *end = argument;
    int         turn;

    pin(cpus[1]);
    for (turn = 0; turn < TURNS * BLOCKS; turn++) {
        receive(end);
        post_recv(end);
        post_send(end);
        sent(end);
    }
    return NULL;
}

static void ping_pong(struct end *a, struct end *b)
{
    static double blocks[BLOCKS];
    pthread_t     thread;
    int           block, turn;

    post_recv(a);
    post_recv(b);
    NEED(pthread_create(&thread, NULL, echo, b) == 0);
    for (block = 0; block < BLOCKS; block++) {
        double start = now_us();

        for (turn = 0; turn < TURNS; turn++) {
            post_send(a);
            sent(a);
            receive(a);
            post_recv(a);
        }
        blocks[block] = (now_us() - start) * 1e3 / TURNS / 2;
    }
    NEED(pthread_join(thread, NULL) == 0);
    qsort(blocks, BLOCKS, sizeof blocks[0], by_value);
    printf("%7d bytes one way: best %.0f ns, median %.0f ns\n", SIZE, blocks[0], blocks[BLOCKS / 2]);
}

int main(int argc, char **argv)
{
    static struct end a, b;
    int               again;

    test_start();
    find_cpus();
    end_open(&a);
    end_open(&b);
    descriptor_fill(a.recv, VIP_CONTROL_OP_SENDRECV, a.in, a.memory.handle, SIZE);
    descriptor_fill(a.send, VIP_CONTROL_OP_SENDRECV, a.out, a.memory.handle, SIZE);
    descriptor_fill(b.recv, VIP_CONTROL_OP_SENDRECV, b.in, b.memory.handle, SIZE);
    descriptor_fill(b.send, VIP_CONTROL_OP_SENDRECV, b.out, b.memory.handle, SIZE);
    connect_ends(&a, &b);
    alone(&a, &b);
    if (argc > 1 && strcmp(argv[1], "alone") == 0)
        for (again = 0; again < 20; again++)
            alone(&a, &b);
    else
        ping_pong(&a, &b);
    end_close(&a);
    end_close(&b);
    return 0;
}
