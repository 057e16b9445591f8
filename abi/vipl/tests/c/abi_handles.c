/*
 * abi_handles - statement 204: no handle, however wrong, does more than VIP_INVALID_PARAMETER, or the code documented for it.
 *
 * Every call is made with NULL, small and large numbers, addresses of memory, random numbers, handles of another kind, freed
 * handles, and live handles with one bit changed.
 */
#include "calls.h"

enum { RANDOM = 200, BAD_MAX = 2048 };

/* The live objects, and one freed one of each kind. */
struct objects {
    struct nic            nic;
    struct memory         memory;
    VIP_VI_HANDLE         vi;
    VIP_CQ_HANDLE         cq;
    VIP_NIC_HANDLE        closed_nic;
    VIP_VI_HANDLE         destroyed_vi;
    VIP_CQ_HANDLE         destroyed_cq;
    VIP_PROTECTION_HANDLE destroyed_ptag;
    VIP_CONN_HANDLE       rejected;
    VIP_MEM_HANDLE        deregistered;
    union address         address;
};

static uint64_t next_random(void)
{
    static uint64_t state = 0x9E3779B97F4A7C15U; /* always the same */

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static VIP_CONN_HANDLE reject_one(struct nic *nic)
{
    struct requesting requesting;
    union address     local, remote;
    VIP_VI_HANDLE     vi = vi_create(nic, NULL, NULL, VIP_FALSE);
    VIP_CONN_HANDLE   connection;
    char              name[16];

    address_of(nic, &local, NULL, "client");
    address_of(nic, &remote, NULL, test_name(name, sizeof name, getpid(), 'h'));
    request_start(&requesting, vi, &local, &remote, SOON_MS);
    connection = await_request(nic, &remote, SOON_MS);
    MUST(VipConnectReject(connection));
    NEED(request_end(&requesting) == VIP_REJECT);
    vi_close(vi);
    return connection;
}

static void make_objects(struct objects *objects, const char *device)
{
    struct nic   *nic = &objects->nic;
    struct memory memory;

    MUST(VipOpenNic(device, &objects->closed_nic));
    MUST(VipCloseNic(objects->closed_nic));
    nic_open(nic, device);
    objects->rejected = reject_one(nic);
    MUST(VipCreatePtag(nic->handle, &objects->destroyed_ptag));
    MUST(VipDestroyPtag(nic->handle, objects->destroyed_ptag));
    memory_get(nic, &memory, 4096, VIP_FALSE);
    objects->deregistered = memory.handle;
    memory_put(nic, &memory);
    MUST(VipCreateCQ(nic->handle, 16, &objects->destroyed_cq));
    MUST(VipDestroyCQ(objects->destroyed_cq));
    objects->destroyed_vi = vi_create(nic, NULL, NULL, VIP_FALSE);
    vi_close(objects->destroyed_vi);

    memory_get(nic, &objects->memory, 4096, VIP_FALSE);
    MUST(VipCreateCQ(nic->handle, 16, &objects->cq));
    objects->vi = vi_create(nic, NULL, NULL, VIP_FALSE);
    address_of(nic, &objects->address, NULL, "nobody");
}

static size_t bad_pointers(const struct objects *objects, void **bad)
{
    static int  somewhere;
    void *const live[] = {objects->nic.handle, objects->nic.ptag, objects->vi, objects->cq};
    void *const freed[] = {objects->closed_nic, objects->destroyed_ptag, objects->destroyed_vi, objects->destroyed_cq,
                           objects->rejected};
    size_t      count = 0, i, bit;

    bad[count++] = NULL;
    bad[count++] = &somewhere;
    bad[count++] = objects->memory.at;
    bad[count++] = (void *)(uintptr_t)-1;
    for (i = 1; i < 64; i++)
        bad[count++] = (void *)(uintptr_t)i;
    for (i = 0; i < RANDOM; i++)
        bad[count++] = (void *)(uintptr_t)(next_random() >> (i % 4 * 16));
    memcpy(bad + count, freed, sizeof freed);
    count += sizeof freed / sizeof freed[0];
    memcpy(bad + count, live, sizeof live); /* of another kind: the right one is left out below */
    count += sizeof live / sizeof live[0];
    for (i = 0; i < sizeof live / sizeof live[0]; i++)
        for (bit = 0; bit < sizeof(void *) * 8; bit++)
            bad[count++] = (void *)((uintptr_t)live[i] ^ (uintptr_t)1 << bit);
    NEED(count <= BAD_MAX);
    return count;
}

static void handles(const struct objects *objects, const struct calls *calls)
{
    static void *bad[BAD_MAX];
    size_t       i, count = bad_pointers(objects, bad);

    for (i = 0; i < count; i++) {
        if (bad[i] != objects->nic.handle)
            calls_with_nic(calls, bad[i], "NIC");
        if (bad[i] != objects->vi)
            calls_with_vi(calls, bad[i], "VI");
        if (bad[i] != objects->cq)
            calls_with_cq(calls, bad[i], "CQ");
        calls_with_connection(calls, bad[i], "connection");
    }
}

/* VIP_INVALID_PTAG is documented; NULL is a legal tag unless strict. */
static void tags(const struct objects *objects, struct verdict *verdict)
{
    static void     *bad[BAD_MAX];
    const struct nic *nic = &objects->nic;
    size_t            i, count = bad_pointers(objects, bad);

    for (i = 0; i < count; i++) {
        VIP_MEM_ATTRIBUTES mem_attributes = {NULL, VIP_FALSE, VIP_FALSE};
        VIP_VI_ATTRIBUTES  vi_attributes = good_vi_attributes(nic);
        VIP_MEM_HANDLE     handle;
        VIP_VI_HANDLE      vi;
        VIP_RETURN         result;

        if (!bad[i] || bad[i] == nic->ptag)
            continue;
        mem_attributes.Ptag = vi_attributes.Ptag = bad[i];
        RETURNS(verdict, VIP_INVALID_PTAG, VipRegisterMem(nic->handle, objects->memory.at, 64, &mem_attributes, &handle));
        RETURNS(verdict, VIP_INVALID_PTAG,
                VipSetMemAttributes(nic->handle, objects->memory.at, objects->memory.handle, &mem_attributes));
        RETURNS(verdict, VIP_INVALID_PTAG, VipCreateVi(nic->handle, &vi_attributes, NULL, NULL, &vi));
        RETURNS(verdict, VIP_INVALID_PTAG, VipSetViAttributes(objects->vi, &vi_attributes));
        result = VipDestroyPtag(nic->handle, bad[i]);
        check(verdict, result == VIP_INVALID_PTAG || result == VIP_INVALID_PARAMETER, "VipDestroyPtag: %s", result_name(result));
    }
}

static int post_errors;

static void count_post_errors(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    (void)context;
    if (error->ErrorCode != VIP_ERROR_POST_DESC)
        die("asynchronous error %d", (int)error->ErrorCode);
    __atomic_add_fetch(&post_errors, 1, __ATOMIC_SEQ_CST);
}

/* A bad memory handle of a descriptor is an asynchronous error, VIP_ERROR_POST_DESC. */
static void memory_handles(struct objects *objects, struct verdict *verdict)
{
    struct nic        *nic = &objects->nic;
    VIP_UINT8         *at = objects->memory.at;
    VIP_MEM_ATTRIBUTES attributes = {NULL, VIP_FALSE, VIP_FALSE};
    VIP_DESCRIPTOR    *descriptor = descriptor_at(&objects->memory, 0), *done = descriptor;
    int                i, posted = 0;
    double             end;

    attributes.Ptag = nic->ptag;
    MUST(VipErrorCallback(nic->handle, NULL, count_post_errors));
    for (i = -3; i < RANDOM; i++) {
        VIP_MEM_HANDLE bad = i == -3 ? 0 : i == -2 ? 0xFFFFFFFFU : i == -1 ? objects->deregistered : (VIP_MEM_HANDLE)next_random();

        if (i >= 0 && i < 32)
            bad = objects->memory.handle ^ (VIP_MEM_HANDLE)1 << i;
        if (bad == objects->memory.handle)
            continue;
        RETURNS(verdict, VIP_INVALID_PARAMETER, VipDeregisterMem(nic->handle, at, bad));
        RETURNS(verdict, VIP_INVALID_PARAMETER, VipSetMemAttributes(nic->handle, at, bad, &attributes));
        RETURNS(verdict, VIP_INVALID_PARAMETER, VipQueryMem(nic->handle, at, bad, &attributes));
        descriptor_fill(descriptor, VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
        RETURNS(verdict, VIP_SUCCESS, VipPostRecv(objects->vi, descriptor, bad));
        RETURNS(verdict, VIP_SUCCESS, VipPostSend(objects->vi, descriptor, bad));
        posted += 2;
    }
    RETURNS(verdict, VIP_DESCRIPTOR_ERROR, VipRecvDone(objects->vi, &done));
    check(verdict, done == NULL, "a descriptor with a bad memory handle was queued");
    RETURNS(verdict, VIP_DESCRIPTOR_ERROR, VipSendDone(objects->vi, &done));
    check(verdict, done == NULL, "a descriptor with a bad memory handle was queued");

    end = now_us() + SOON_MS * 1e3;
    while (__atomic_load_n(&post_errors, __ATOMIC_SEQ_CST) < posted && now_us() < end)
        pause_ms(1);
    check(verdict, post_errors == posted, "%d of %d posts were reported", post_errors, posted);
    MUST(VipErrorCallback(nic->handle, NULL, on_error));
}

static void nulls(struct objects *objects, struct verdict *verdict, const char *device)
{
    VIP_NIC_HANDLE         nic = objects->nic.handle, opened;
    VIP_VI_HANDLE          vi = objects->vi, made;
    VIP_CQ_HANDLE          cq = objects->cq;
    VIP_UINT8             *at = objects->memory.at;
    VIP_MEM_HANDLE         region = objects->memory.handle, handle;
    VIP_MEM_ATTRIBUTES     mem_attributes = {NULL, VIP_FALSE, VIP_FALSE};
    VIP_VI_ATTRIBUTES      vi_attributes = good_vi_attributes(&objects->nic);
    VIP_NET_ADDRESS       *address = &objects->address.net;
    VIP_CONN_HANDLE        connection;
    VIP_VI_STATE           state;
    VIP_BOOLEAN            one, two;
    VIP_AUTODISCOVERY_LIST list = {1, NULL, 0};
    union address          out;
    char                   name[64] = "localhost";
    VIP_ULONG              length = sizeof name;
    VIP_RETURN             result;

#define IS_INVALID(call) RETURNS(verdict, VIP_INVALID_PARAMETER, call)
    memset(&out, 0, sizeof out);
    mem_attributes.Ptag = objects->nic.ptag;
    IS_INVALID(VipOpenNic(NULL, &opened));
    IS_INVALID(VipOpenNic(device, NULL));
    IS_INVALID(VipQueryNic(nic, NULL));
    IS_INVALID(VipCreatePtag(nic, NULL));
    IS_INVALID(VipRegisterMem(nic, NULL, 64, &mem_attributes, &handle));
    IS_INVALID(VipRegisterMem(nic, at, 64, &mem_attributes, NULL));
    IS_INVALID(VipSetMemAttributes(nic, at, region, NULL));
    IS_INVALID(VipQueryMem(nic, at, region, NULL));
    IS_INVALID(VipCreateVi(nic, NULL, NULL, NULL, &made));
    IS_INVALID(VipCreateVi(nic, &vi_attributes, NULL, NULL, NULL));
    IS_INVALID(VipQueryVi(vi, NULL, &vi_attributes, &one, &two));
    IS_INVALID(VipQueryVi(vi, &state, NULL, &one, &two));
    IS_INVALID(VipQueryVi(vi, &state, &vi_attributes, NULL, &two));
    IS_INVALID(VipQueryVi(vi, &state, &vi_attributes, &one, NULL));
    IS_INVALID(VipSetViAttributes(vi, NULL));
    IS_INVALID(VipConnectWait(nic, NULL, 1, &out.net, &vi_attributes, &connection));
    IS_INVALID(VipConnectWait(nic, address, 1, NULL, &vi_attributes, &connection));
    IS_INVALID(VipConnectWait(nic, address, 1, &out.net, NULL, &connection));
    IS_INVALID(VipConnectWait(nic, address, 1, &out.net, &vi_attributes, NULL));
    IS_INVALID(VipConnectRequest(vi, NULL, address, 1, &vi_attributes));
    IS_INVALID(VipConnectRequest(vi, address, NULL, 1, &vi_attributes));
    IS_INVALID(VipConnectRequest(vi, address, address, 1, NULL));
    IS_INVALID(VipConnectRequest(vi, address, address, 0, &vi_attributes));
    IS_INVALID(VipConnectPeerRequest(vi, NULL, address, 1));
    IS_INVALID(VipConnectPeerRequest(vi, address, NULL, 1));
    IS_INVALID(VipPostSend(vi, NULL, region));
    IS_INVALID(VipPostRecv(vi, NULL, region));
    IS_INVALID(VipSendDone(vi, NULL));
    IS_INVALID(VipRecvDone(vi, NULL));
    IS_INVALID(VipSendWait(vi, 1, NULL));
    IS_INVALID(VipRecvWait(vi, 1, NULL));
    IS_INVALID(VipSendNotify(vi, NULL, NULL));
    IS_INVALID(VipRecvNotify(vi, NULL, NULL));
    IS_INVALID(VipCreateCQ(nic, 16, NULL));
    IS_INVALID(VipCreateCQ(nic, 0, &made));
    IS_INVALID(VipCQDone(cq, NULL, &one));
    IS_INVALID(VipCQDone(cq, &made, NULL));
    IS_INVALID(VipCQWait(cq, 1, NULL, &one));
    IS_INVALID(VipCQWait(cq, 1, &made, NULL));
    IS_INVALID(VipCQNotify(cq, NULL, NULL));
    IS_INVALID(VipQuerySystemManagementInfo(nic, 99, &list));
    IS_INVALID(VipQuerySystemManagementInfo(nic, VIP_SMI_AUTODISCOVERY, NULL));
    MUST(VipNSInit(nic, NULL));
    IS_INVALID(VipNSGetHostByName(nic, NULL, &out.net, 0));
    IS_INVALID(VipNSGetHostByName(nic, name, NULL, 0));
    IS_INVALID(VipNSGetHostByAddr(nic, NULL, name, &length));
    IS_INVALID(VipNSGetHostByAddr(nic, address, NULL, &length));
    IS_INVALID(VipNSGetHostByAddr(nic, address, name, NULL));
    MUST(VipNSShutdown(nic));

    /* Nothing is outstanding either. */
    result = VipConnectPeerDone(vi, NULL);
    check(verdict, result == VIP_INVALID_PARAMETER || result == VIP_INVALID_STATE, "VipConnectPeerDone: %s", result_name(result));
    result = VipConnectPeerWait(vi, NULL);
    check(verdict, result == VIP_INVALID_PARAMETER || result == VIP_INVALID_STATE, "VipConnectPeerWait: %s", result_name(result));
#undef IS_INVALID
}

/* All that must have had no effect on the live objects. */
static void alive(struct objects *objects, struct verdict *verdict)
{
    VIP_VI_HANDLE     other = vi_create(&objects->nic, NULL, NULL, VIP_FALSE), found;
    VIP_VI_ATTRIBUTES attributes;
    VIP_VI_STATE      state;
    VIP_BOOLEAN       send_empty, recv_empty;
    VIP_DESCRIPTOR   *done;

    RETURNS(verdict, VIP_SUCCESS, VipQueryVi(objects->vi, &state, &attributes, &send_empty, &recv_empty));
    check(verdict, state == VIP_STATE_IDLE && send_empty && recv_empty, "the VI has changed");
    check(verdict, attributes.Ptag == objects->nic.ptag, "the VI's tag has changed");
    RETURNS(verdict, VIP_NOT_DONE, VipCQDone(objects->cq, &found, &recv_empty));
    connect_pair(&objects->nic, objects->vi, other, 'a');
    descriptor_fill(descriptor_at(&objects->memory, 0), VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
    descriptor_fill(descriptor_at(&objects->memory, 1), VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
    MUST(VipPostRecv(objects->vi, descriptor_at(&objects->memory, 0), objects->memory.handle));
    MUST(VipPostSend(other, descriptor_at(&objects->memory, 1), objects->memory.handle));
    RETURNS(verdict, VIP_SUCCESS, VipRecvWait(objects->vi, SOON_MS, &done));
    vi_close(other);
    vi_close(objects->vi);
}

int main(void)
{
    struct verdict verdict = {204, 0, 0, "random, wrong, freed and NULL handles in every call"};
    const char    *device = test_start();
    struct objects objects;
    struct calls   calls;

    make_objects(&objects, device);
    calls.verdict = &verdict;
    calls.nic = &objects.nic;
    calls.memory = &objects.memory;
    calls.vi = objects.vi;
    calls.address = &objects.address;
    handles(&objects, &calls);
    tags(&objects, &verdict);
    memory_handles(&objects, &verdict);
    nulls(&objects, &verdict, device);
    alive(&objects, &verdict);

    MUST(VipDestroyCQ(objects.cq));
    memory_put(&objects.nic, &objects.memory);
    nic_close(&objects.nic);
    conclude(&verdict);
    return test_failed;
}
