/*
 * abi_cycles - statement 207: open, connect, transfer and close, again and again, and nothing is left behind.
 *
 * A second thread takes part that never ends: what it remembers of VIs that are gone must not pile up either.
 */
#include "test.h"

#include <dirent.h>

enum { WARM_UP = 50, CYCLES = 1000, GROWTH_KB_MAX = 1024 };

struct cycle {
    pthread_barrier_t turn;
    VIP_VI_HANDLE     vi;
    int               over;
};

static int entries_of(const char *folder)
{
    DIR *listing = opendir(folder);
    int  entries = 0;

    NEED(listing != NULL);
    while (readdir(listing))
        entries++;
    closedir(listing);
    return entries;
}

static long resident_kb(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long  total, resident;

    NEED(file != NULL && fscanf(file, "%ld %ld", &total, &resident) == 2);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Takes the receive of each cycle. */
static void *receiver(void *argument)
{
    struct cycle *cycle = argument;

    for (;;) {
        VIP_DESCRIPTOR *done;
        VIP_RETURN      result;

        pthread_barrier_wait(&cycle->turn);
        if (cycle->over)
            return NULL;
        while ((result = VipRecvDone(cycle->vi, &done)) == VIP_NOT_DONE)
            continue;
        completed(result, &done);
        pthread_barrier_wait(&cycle->turn);
    }
}

static void run(struct cycle *cycle, const char *device)
{
    struct nic      nic;
    struct memory   memory;
    VIP_CQ_HANDLE   cq;
    VIP_VI_HANDLE   server, client, vi;
    VIP_BOOLEAN     recv_queue;
    VIP_DESCRIPTOR *done;

    nic_open(&nic, device);
    memory_get(&nic, &memory, 4096, VIP_FALSE);
    MUST(VipCreateCQ(nic.handle, 16, &cq));
    server = vi_create(&nic, NULL, NULL, VIP_FALSE);
    client = vi_create(&nic, cq, cq, VIP_FALSE);
    connect_pair(&nic, server, client, 'y');
    descriptor_fill(descriptor_at(&memory, 0), VIP_CONTROL_OP_SENDRECV, memory.at + 1024, memory.handle, 100);
    descriptor_fill(descriptor_at(&memory, 1), VIP_CONTROL_OP_SENDRECV, memory.at + 2048, memory.handle, 100);
    MUST(VipPostRecv(server, descriptor_at(&memory, 0), memory.handle));
    cycle->vi = server;
    pthread_barrier_wait(&cycle->turn);
    MUST(VipPostSend(client, descriptor_at(&memory, 1), memory.handle));
    MUST(VipCQWait(cq, SOON_MS, &vi, &recv_queue));
    NEED(vi == client && !recv_queue);
    MUST(VipSendDone(client, &done));
    pthread_barrier_wait(&cycle->turn);
    vi_close(client);
    vi_close(server);
    MUST(VipDestroyCQ(cq));
    memory_put(&nic, &memory);
    nic_close(&nic);
}

int main(void)
{
    struct verdict verdict = {207, 0, 0, "cycles of opening and closing leave nothing"};
    const char    *device = test_start();
    struct cycle   cycle;
    pthread_t      thread;
    int            i, descriptors = 0, threads = 0;
    long           resident = 0;

    memset(&cycle, 0, sizeof cycle);
    NEED(pthread_barrier_init(&cycle.turn, NULL, 2) == 0);
    NEED(pthread_create(&thread, NULL, receiver, &cycle) == 0);
    for (i = 0; i < WARM_UP + CYCLES; i++) {
        if (i == WARM_UP) {
            descriptors = entries_of("/proc/self/fd");
            threads = entries_of("/proc/self/task");
            resident = resident_kb();
        }
        run(&cycle, device);
    }
    check(&verdict, entries_of("/proc/self/fd") <= descriptors, "%d descriptors more", entries_of("/proc/self/fd") - descriptors);
    check(&verdict, entries_of("/proc/self/task") <= threads, "%d threads more", entries_of("/proc/self/task") - threads);
    check(&verdict, resident_kb() - resident <= GROWTH_KB_MAX, "%ld kB more", resident_kb() - resident);
    printf("# %d descriptors, %d threads, %ld kB before, %ld kB after\n", descriptors, threads, resident, resident_kb());
    cycle.over = 1;
    pthread_barrier_wait(&cycle.turn);
    NEED(pthread_join(thread, NULL) == 0);
    conclude(&verdict);
    return test_failed;
}
