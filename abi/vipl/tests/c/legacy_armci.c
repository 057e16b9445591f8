/*
 * legacy_armci - statements 91 and 210, as ARMCI used cLAN: VIPL095, peer-to-peer connections among all, addresses in fixed buffers of
 * 40 bytes, VIs with the NULL tag over regions with a created one, return codes by #ifndef, polling with a timeout of 1 ms.
 */
#define VIPL095
#include "test.h"

#ifndef VIP_ERROR_NOT_SUPPORTED
#define VIP_ERROR_NOT_SUPPORTED 77
#endif
#ifndef VIP_ERROR_NAMESERVICE
#define VIP_ERROR_NAMESERVICE 78
#endif

enum { PEERS = 3, WORDS = 512, ROUNDS = 200 };

/*
 * What each process lets the others write.  A peer can be a round ahead, so there are two receives for its signals and two places
 * for its data.
 */
struct region {
    VIP_DESCRIPTOR send, hello[PEERS], signal[PEERS][2];
    VIP_UINT64     out[WORDS];
    VIP_UINT64     in[PEERS][2][WORDS];
    VIP_UINT64     mine[2], theirs[PEERS][2]; /* address of in, its handle */
};

static void fixed_address(struct nic *nic, char *bytes, pid_t owner, int from, int to)
{
    VIP_NET_ADDRESS *address = (VIP_NET_ADDRESS *)(void *)bytes;
    VIP_UINT32       discriminator[2];

    memset(bytes, 0, 40);
    address->HostAddressLen = nic->attributes.NicAddressLen;
    memcpy(address->HostAddress, nic->attributes.LocalNicAddress, nic->attributes.NicAddressLen);
    discriminator[0] = (VIP_UINT32)owner;
    discriminator[1] = (VIP_UINT32)(from * PEERS + to);
    address->DiscriminatorLen = sizeof discriminator;
    memcpy(address->HostAddress + address->HostAddressLen, discriminator, sizeof discriminator);
}

static VIP_DESCRIPTOR *poll_recv(VIP_VI_HANDLE vi)
{
    VIP_DESCRIPTOR *done;
    VIP_RETURN      result;
    double          end = now_us() + SOON_MS * 1e3;

    while ((result = VipRecvWait(vi, 1, &done)) == VIP_TIMEOUT)
        NEED(now_us() < end);
    return completed(result, &done);
}

static void post(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor, VIP_MEM_HANDLE handle)
{
    VIP_DESCRIPTOR *done;
    VIP_RETURN      result;

    MUST(VipPostSend(vi, descriptor, handle));
    while ((result = VipSendDone(vi, &done)) == VIP_NOT_DONE)
        continue;
    NEED(completed(result, &done) == descriptor);
}

static void post_signal(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor, VIP_MEM_HANDLE handle)
{
    descriptor_fill(descriptor, VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
    MUST(VipPostRecv(vi, descriptor, handle));
}

/* All requests are issued before any is waited for. */
static void connect_all(const struct sides *sides, struct nic *nic, struct memory *memory, VIP_VI_HANDLE vi[PEERS])
{
    struct region    *region = (struct region *)(void *)memory->at;
    VIP_VI_ATTRIBUTES attributes, remote_attributes;
    int               other, me = sides->index;

    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = nic->attributes.MaxTransferSize;
    attributes.Ptag = NULL;
    attributes.EnableRdmaWrite = VIP_TRUE;
    for (other = 0; other < PEERS; other++) {
        char local[40], remote[40];

        if (other == me)
            continue;
        MUST(VipCreateVi(nic->handle, &attributes, NULL, NULL, &vi[other]));
        descriptor_fill(&region->hello[other], VIP_CONTROL_OP_SENDRECV, region->theirs[other], memory->handle,
                        sizeof region->theirs[other]);
        MUST(VipPostRecv(vi[other], &region->hello[other], memory->handle));
        post_signal(vi[other], &region->signal[other][0], memory->handle);
        post_signal(vi[other], &region->signal[other][1], memory->handle);
        fixed_address(nic, local, sides->owner, me, other);
        fixed_address(nic, remote, sides->owner, other, me);
        MUST(VipConnectPeerRequest(vi[other], (VIP_NET_ADDRESS *)(void *)local, (VIP_NET_ADDRESS *)(void *)remote, SOON_MS));
    }
    for (other = 0; other < PEERS; other++) {
        VIP_RETURN result;

        if (other == me)
            continue;
        result = VipConnectPeerDone(vi[other], &remote_attributes);
        if (result == VIP_NOT_DONE)
            result = VipConnectPeerWait(vi[other], &remote_attributes);
        MUST(result);
        NEED(remote_attributes.EnableRdmaWrite);
    }
}

/* Each writes to each, then says so by a send: when that has come the data is there. */
static void exchange(int me, int round, struct memory *memory, VIP_VI_HANDLE vi[PEERS])
{
    struct region *region = (struct region *)(void *)memory->at;
    int            other, i;

    for (i = 0; i < WORDS; i++)
        region->out[i] = (VIP_UINT64)me << 32 | (VIP_UINT64)round << 16 | (VIP_UINT64)i;
    for (other = 0; other < PEERS; other++) {
        VIP_UINT64 place = region->theirs[other][0] + (VIP_UINT64)(me * 2 + round % 2) * sizeof region->out;

        if (other == me)
            continue;
        descriptor_fill_rdma(&region->send, VIP_CONTROL_OP_RDMAWRITE, place, (VIP_MEM_HANDLE)region->theirs[other][1], region->out,
                             memory->handle, sizeof region->out);
        post(vi[other], &region->send, memory->handle);
        descriptor_fill(&region->send, VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
        post(vi[other], &region->send, memory->handle);
    }
    for (other = 0; other < PEERS; other++) {
        if (other == me)
            continue;
        post_signal(vi[other], poll_recv(vi[other]), memory->handle);
        for (i = 0; i < WORDS; i++)
            NEED(region->in[other][round % 2][i] == ((VIP_UINT64)other << 32 | (VIP_UINT64)round << 16 | (VIP_UINT64)i));
    }
}

static int peer(const struct sides *sides)
{
    struct nic     nic;
    struct memory  memory;
    struct region *region;
    VIP_VI_HANDLE  vi[PEERS] = {NULL};
    int            me = sides->index, other, round;

    nic_open(&nic, sides->device);
    memory_get(&nic, &memory, sizeof *region, VIP_TRUE); /* with a created tag */
    region = (struct region *)(void *)memory.at;
    connect_all(sides, &nic, &memory, vi);
    region->mine[0] = (uintptr_t)region->in;
    region->mine[1] = memory.handle;
    for (other = 0; other < PEERS; other++) {
        if (other == me)
            continue;
        descriptor_fill(&region->send, VIP_CONTROL_OP_SENDRECV, region->mine, memory.handle, sizeof region->mine);
        post(vi[other], &region->send, memory.handle);
    }
    for (other = 0; other < PEERS; other++)
        if (other != me)
            NEED(poll_recv(vi[other])->CS.Length == sizeof region->mine);
    for (round = 0; round < ROUNDS; round++)
        exchange(me, round, &memory, vi);

    /*
     * ARMCI leaves its VIs to the closing of the NIC, with receives still posted.  So their memory has to stay registered: a
     * neighbour that closes first flushes them, and a status that cannot be written is VIP_ERROR_COMP_PROT.
     */
    all_here(sides);
    MUST(VipCloseNic(nic.handle));
    free(memory.at);
    return 0;
}

int main(void)
{
    int (*const side[])(const struct sides *) = {peer, peer, peer};

    int held = run_all(test_start(), PEERS, side);

    ok(held, 91, "%d processes connect to each other, all at once", PEERS);
    ok(held, 210, "peer-to-peer among %d, NULL tag, 40-byte addresses, RDMA write then send", PEERS);
    return test_failed;
}
