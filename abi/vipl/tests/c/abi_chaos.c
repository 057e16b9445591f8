/*
 * abi_chaos - statements 203 and 204: threads call everything on shared handles, many of them just closed by another thread.
 *
 * Whatever a call returns is right, as long as it returns, the process lives, no NIC fails (VIP_ERROR_CATASTROPHIC), and when all are
 * closed nothing is left of any.
 */
#include "test.h"

#include <dirent.h>

enum { THREADS = 4, NICS = 2, VIS = 12, CQS = 4, REGIONS = 4, RUN_MS = 1500 };

static VIP_UINT8      bytes[REGIONS][4096] __attribute__((aligned(4096)));
static void          *nics[NICS], *vis[VIS], *cqs[CQS];
static VIP_MEM_HANDLE regions[REGIONS];
static const char    *device;
static int            failures, over;
static uint32_t       pairs, connected, received;
static VIP_UINT16     host_length;
static VIP_UINT8      host[64];

static void count_failures(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    (void)context;
    if (error->ErrorCode == VIP_ERROR_CATASTROPHIC)
        __atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
}

static void on_vi(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor)
{
    VIP_DESCRIPTOR *done;

    (void)context, (void)nic, (void)descriptor;
    VipRecvDone(vi, &done);
}

static void on_cq(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN recv_queue)
{
    VIP_DESCRIPTOR *done;

    (void)context, (void)nic;
    if (recv_queue)
        VipRecvDone(vi, &done);
    else
        VipSendDone(vi, &done);
}

static int open_descriptors(void)
{
    DIR *listing = opendir("/proc/self/fd");
    int  entries = 0;

    NEED(listing != NULL);
    while (readdir(listing))
        entries++;
    closedir(listing);
    return entries;
}

static void *get(void **place)
{
    return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}

static void *put(void **place, void *handle)
{
    return __atomic_exchange_n(place, handle, __ATOMIC_ACQ_REL);
}

static uint32_t next(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(*state >> 33) % below;
}

static void address(union address *address, uint32_t number)
{
    uint32_t words[2];

    memset(address, 0, sizeof *address);
    address->net.HostAddressLen = host_length;
    memcpy(address->net.HostAddress, host, host_length);
    address->net.DiscriminatorLen = sizeof words;
    words[0] = (uint32_t)getpid();
    words[1] = number;
    memcpy(address->net.HostAddress + host_length, words, sizeof words);
}

/* Objects number i of each kind belong to NIC number i % NICS, most of the time. */
static uint32_t beside(uint64_t *state, uint32_t number, uint32_t below)
{
    uint32_t other = next(state, below);

    return next(state, 16) ? other - other % NICS + number % NICS : other;
}

static void open_one(uint64_t *state)
{
    VIP_NIC_HANDLE nic;

    if (VipOpenNic(device, &nic) != VIP_SUCCESS)
        return;
    VipErrorCallback(nic, NULL, count_failures);
    nic = put(&nics[next(state, NICS)], nic);
    if (nic)
        VipCloseNic(nic);
}

static void create_one(uint64_t *state)
{
    VIP_VI_ATTRIBUTES attributes;
    VIP_VI_HANDLE     vi;
    uint32_t          number = next(state, VIS);
    void             *nic = get(&nics[beside(state, number, NICS)]);
    void             *cq = next(state, 2) ? get(&cqs[beside(state, number, CQS)]) : NULL;

    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = (VIP_RELIABILITY_LEVEL)(1U << next(state, 3));
    attributes.MaxTransferSize = 4096;
    attributes.EnableRdmaWrite = VIP_TRUE;
    if (VipCreateVi(nic, &attributes, cq, next(state, 2) ? cq : NULL, &vi) != VIP_SUCCESS)
        return;
    vi = put(&vis[number], vi);
    if (next(state, 2)) {
        VipDisconnect(vi);
        VipDestroyVi(vi);
    }
}

static void post_recv(uint64_t *state, VIP_VI_HANDLE vi, uint32_t number)
{
    uint32_t        region = beside(state, number, REGIONS);
    VIP_DESCRIPTOR *descriptor = (VIP_DESCRIPTOR *)(void *)bytes[region] + next(state, 16);
    VIP_MEM_HANDLE  handle = __atomic_load_n(&regions[region], __ATOMIC_RELAXED);

    descriptor_fill(descriptor, VIP_CONTROL_OP_SENDRECV, bytes[region] + 2048, handle, 1024);
    VipPostRecv(vi, descriptor, handle);
}

static void post(uint64_t *state, uint32_t number)
{
    VIP_VI_HANDLE   vi = get(&vis[number]);
    uint32_t        region = beside(state, number, REGIONS);
    VIP_DESCRIPTOR *descriptor = (VIP_DESCRIPTOR *)(void *)bytes[region] + next(state, 16);
    VIP_MEM_HANDLE  handle = __atomic_load_n(&regions[region], __ATOMIC_RELAXED);
    VIP_UINT8      *buffer = bytes[region] + 2048;

    switch (next(state, 4)) {
    case 0:
        descriptor_fill_rdma(descriptor, VIP_CONTROL_OP_RDMAWRITE, (uintptr_t)buffer, handle, buffer + 512, handle, 256);
        VipPostSend(vi, descriptor, handle);
        break;
    case 1:
        descriptor_fill(descriptor, VIP_CONTROL_OP_SENDRECV, buffer, handle, next(state, 1024));
        VipPostSend(vi, descriptor, handle);
        break;
    default: post_recv(state, vi, number);
    }
}

/* Two VIs that are connected, if nobody disturbs that either. */
static void create_pair(uint64_t *state)
{
    VIP_VI_ATTRIBUTES attributes, remote;
    VIP_VI_HANDLE     pair[2] = {NULL, NULL}, old;
    union address     local[2];
    uint32_t          number = 1 + __atomic_add_fetch(&pairs, 1, __ATOMIC_RELAXED), place[2];
    int               i, receives;

    place[0] = next(state, VIS);
    place[1] = next(state, VIS);

    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = (VIP_RELIABILITY_LEVEL)(1U << next(state, 3));
    attributes.MaxTransferSize = 4096;
    attributes.EnableRdmaWrite = VIP_TRUE;
    address(&local[0], 2 * number);
    address(&local[1], 2 * number + 1);
    for (i = 0; i < 2; i++) {
        void *cq = next(state, 2) ? get(&cqs[beside(state, place[i], CQS)]) : NULL;

        if (VipCreateVi(get(&nics[place[i] % NICS]), &attributes, NULL, cq, &pair[i]) == VIP_SUCCESS) {
            VipConnectPeerRequest(pair[i], &local[i].net, &local[!i].net, 20);
            for (receives = 0; receives < 8; receives++)
                post_recv(state, pair[i], place[i]);
        }
    }
    for (i = 0; i < 2; i++)
        if (VipConnectPeerWait(pair[i], &remote) == VIP_SUCCESS)
            __atomic_add_fetch(&connected, 1, __ATOMIC_RELAXED);
    for (i = 0; i < 2; i++) {
        old = put(&vis[place[i]], pair[i]);
        VipDisconnect(old);
        VipDestroyVi(old);
    }
}

static void connect_one(uint64_t *state, VIP_VI_HANDLE vi)
{
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE   connection;
    union address     local, remote, found;

    address(&local, next(state, 3));
    address(&remote, next(state, 3));
    memset(&found, 0, sizeof found);
    switch (next(state, 4)) {
    case 0:
        if (VipConnectWait(get(&nics[next(state, NICS)]), &local.net, 5, &found.net, &attributes, &connection) != VIP_SUCCESS)
            break;
        if (next(state, 4) == 0 || VipConnectAccept(connection, vi) != VIP_SUCCESS)
            VipConnectReject(connection);
        break;
    case 1:
        VipConnectRequest(vi, &local.net, &remote.net, 5, &attributes);
        break;
    case 2:
        VipConnectPeerRequest(vi, &local.net, &remote.net, 5);
        VipConnectPeerDone(vi, &attributes);
        break;
    default:
        VipConnectPeerWait(vi, &attributes);
    }
}

static void take(uint64_t *state, uint32_t number)
{
    VIP_VI_HANDLE     vi = get(&vis[number]);
    VIP_CQ_HANDLE     cq = get(&cqs[next(state, CQS)]);
    VIP_DESCRIPTOR   *done;
    VIP_VI_HANDLE     found;
    VIP_BOOLEAN       recv_queue, empty;
    VIP_VI_STATE      vi_state;
    VIP_VI_ATTRIBUTES attributes;

    switch (next(state, 8)) {
    case 0: VipSendDone(vi, &done); break;
    case 1:
        if (VipRecvDone(vi, &done) == VIP_SUCCESS)
            __atomic_add_fetch(&received, 1, __ATOMIC_RELAXED);
        break;
    case 2: VipRecvWait(vi, 0, &done); break;
    case 3: VipRecvNotify(vi, NULL, on_vi); break;
    case 4: VipCQNotify(cq, NULL, on_cq); break;
    case 5: VipCQWait(cq, next(state, 16) == 0, &found, &recv_queue); break;
    case 6: VipQueryVi(vi, &vi_state, &attributes, &recv_queue, &empty); break;
    default:
        if (VipCQDone(cq, &found, &recv_queue) == VIP_SUCCESS)
            VipRecvDone(found, &done);
    }
}

/* A few messages, so that those VIs that are connected do something. */
static void converse(uint64_t *state, uint32_t number)
{
    uint32_t count = next(state, 8);

    while (count-- > 0) {
        post(state, number);
        take(state, next(state, VIS));
    }
}

static void change_memory(uint64_t *state)
{
    uint32_t           region = next(state, REGIONS);
    VIP_MEM_ATTRIBUTES attributes = {NULL, VIP_TRUE, VIP_FALSE};
    VIP_MEM_HANDLE     handle;
    void              *nic = get(&nics[beside(state, region, NICS)]);

    handle = __atomic_load_n(&regions[region], __ATOMIC_RELAXED);
    if (next(state, 2))
        VipDeregisterMem(nic, bytes[region], handle);
    else
        VipSetMemAttributes(nic, bytes[region], handle, &attributes);
    if (VipRegisterMem(nic, bytes[region], sizeof bytes[region], &attributes, &handle) == VIP_SUCCESS)
        __atomic_store_n(&regions[region], handle, __ATOMIC_RELAXED);
}

static void create_cq(uint64_t *state)
{
    uint32_t      number = next(state, CQS);
    VIP_CQ_HANDLE cq;

    if (VipCreateCQ(get(&nics[beside(state, number, NICS)]), 64, &cq) == VIP_SUCCESS)
        VipDestroyCQ(put(&cqs[number], cq));
}

static void *disturb(void *argument)
{
    uint64_t state = (uintptr_t)argument * 0x9E3779B97F4A7C15U + 1;

    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        uint32_t number = next(&state, VIS);
        void    *vi = get(&vis[number]);

        switch (next(&state, 32)) {
        case 0:
            if (next(&state, 8) == 0)
                open_one(&state);
            break;
        case 1:
            if (next(&state, 64) == 0)
                VipCloseNic(get(&nics[next(&state, NICS)]));
            break;
        case 2: create_one(&state); break;
        case 3:
        case 4: create_pair(&state); break;
        case 5: VipDisconnect(vi); break;
        case 6: VipDestroyVi(vi); break;
        case 7: create_cq(&state); break;
        case 8: VipDestroyCQ(get(&cqs[next(&state, CQS)])); break;
        case 9: change_memory(&state); break;
        case 10: connect_one(&state, vi); break;
        default: converse(&state, number);
        }
    }
    return NULL;
}

int main(void)
{
    struct verdict verdict = {204, 0, 0, "threads on handles that others close"};
    struct nic     nic;
    pthread_t      threads[THREADS];
    uintptr_t      i;
    uint64_t       state;
    int            descriptors;

    device = test_start();
    nic_open(&nic, device);
    host_length = nic.attributes.NicAddressLen;
    memcpy(host, nic.attributes.LocalNicAddress, host_length);
    descriptors = open_descriptors();
    state = 1;
    for (i = 0; i < NICS; i++)
        while (!nics[i])
            open_one(&state);
    for (i = 0; i < THREADS; i++)
        NEED(pthread_create(&threads[i], NULL, disturb, (void *)i) == 0);
    pause_ms(RUN_MS);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (i = 0; i < THREADS; i++)
        NEED(pthread_join(threads[i], NULL) == 0);
    for (i = 0; i < NICS; i++)
        if (nics[i])
            VipCloseNic(nics[i]);
    printf("# %u connections, %u messages\n", connected, received);
    check(&verdict, open_descriptors() <= descriptors, "%d descriptors are left", open_descriptors() - descriptors);
    check(&verdict, connected > 0 && received > 0, "nothing happened");
    check(&verdict, failures == 0, "%d NICs failed", failures);
    nic_close(&nic);
    conclude(&verdict);
    return test_failed;
}
