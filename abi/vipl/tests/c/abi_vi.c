/* abi_vi - statements 46, 59, 75, 105 and 187: reliability levels, handles that are used up, empty queues, no handler. */
#include "calls.h"

static void levels(struct nic *nic)
{
    struct verdict              verdict = {46, 0, 0, "one level that the NIC offers, or none is made"};
    const VIP_RELIABILITY_LEVEL offered = nic->attributes.ReliabilityLevelSupport;
    VIP_VI_ATTRIBUTES           attributes;
    VIP_VI_HANDLE               vi = vi_create(nic, NULL, NULL, VIP_FALSE), made;
    unsigned                    bits;

    memset(&attributes, 0, sizeof attributes);
    attributes.MaxTransferSize = nic->attributes.MaxTransferSize;
    attributes.Ptag = nic->ptag;
    for (bits = 0; bits < 16; bits++) {
        int        one = bits != 0 && (bits & (bits - 1)) == 0;
        VIP_RETURN expected = one && (offered & bits) ? VIP_SUCCESS : VIP_INVALID_RELIABILITY_LEVEL, result;

        attributes.ReliabilityLevel = (VIP_RELIABILITY_LEVEL)bits;
        made = NULL;
        result = VipCreateVi(nic->handle, &attributes, NULL, NULL, &made);
        check(&verdict, result == expected, "VipCreateVi with level %#x: %s", bits, result_name(result));
        check(&verdict, (made != NULL) == (result == VIP_SUCCESS), "level %#x gave the handle %p", bits, made);
        if (result == VIP_SUCCESS)
            vi_close(made);
        result = VipSetViAttributes(vi, &attributes);
        check(&verdict, result == expected, "VipSetViAttributes with level %#x: %s", bits, result_name(result));
    }
    attributes.ReliabilityLevel = (VIP_RELIABILITY_LEVEL)0x8001;
    RETURNS(&verdict, VIP_INVALID_RELIABILITY_LEVEL, VipCreateVi(nic->handle, &attributes, NULL, NULL, &made));
    RETURNS(&verdict, VIP_INVALID_RELIABILITY_LEVEL, VipSetViAttributes(vi, &attributes));
    vi_close(vi);
    conclude(&verdict);
}

static void destroyed(const struct calls *good, VIP_VI_HANDLE vi)
{
    struct verdict verdict = {59, 0, 0, "every call on a destroyed VI is refused, also when its place is taken again"};
    struct calls   calls = *good;
    VIP_VI_HANDLE  successor;

    calls.verdict = &verdict;
    RETURNS(&verdict, VIP_SUCCESS, VipDestroyVi(vi));
    calls_with_vi(&calls, vi, "a destroyed VI");
    successor = vi_create(calls.nic, NULL, NULL, VIP_FALSE);
    calls_with_vi(&calls, vi, "a VI destroyed before another was made");
    vi_close(successor);
    conclude(&verdict);
}

static void used_up(const struct calls *good, struct nic *nic)
{
    struct verdict    verdict = {75, 0, 0, "a connection handle ends with accept or reject"};
    struct calls      calls = *good;
    struct requesting requesting;
    union address     local, remote;
    VIP_CONN_HANDLE   connection;
    VIP_VI_HANDLE     server = vi_create(nic, NULL, NULL, VIP_FALSE), client = vi_create(nic, NULL, NULL, VIP_FALSE);
    char              name[16];

    calls.verdict = &verdict;
    address_of(nic, &local, NULL, "client");
    address_of(nic, &remote, NULL, test_name(name, sizeof name, getpid(), 'u'));

    request_start(&requesting, client, &local, &remote, SOON_MS);
    connection = await_request(nic, &remote, SOON_MS);
    RETURNS(&verdict, VIP_SUCCESS, VipConnectReject(connection));
    RETURNS(&verdict, VIP_REJECT, request_end(&requesting));
    calls_with_connection(&calls, connection, "a rejected connection");

    request_start(&requesting, client, &local, &remote, SOON_MS);
    connection = await_request(nic, &remote, SOON_MS);
    RETURNS(&verdict, VIP_SUCCESS, VipConnectAccept(connection, server));
    RETURNS(&verdict, VIP_SUCCESS, request_end(&requesting));
    calls_with_connection(&calls, connection, "an accepted connection");

    vi_close(client);
    vi_close(server);
    conclude(&verdict);
}

static void empty(VIP_VI_HANDLE vi, VIP_VI_HANDLE bound)
{
    struct verdict  verdict = {105, 0, 0, "Done on an empty queue: VIP_DESCRIPTOR_ERROR and NULL"};
    VIP_VI_HANDLE   vis[2];
    VIP_DESCRIPTOR *done, somewhere;
    size_t          i;

    vis[0] = vi;
    vis[1] = bound;
    for (i = 0; i < 2; i++) {
        done = &somewhere;
        RETURNS(&verdict, VIP_DESCRIPTOR_ERROR, VipSendDone(vis[i], &done));
        check(&verdict, done == NULL, "VipSendDone left a pointer");
        done = &somewhere;
        RETURNS(&verdict, VIP_DESCRIPTOR_ERROR, VipRecvDone(vis[i], &done));
        check(&verdict, done == NULL, "VipRecvDone left a pointer");
    }
    conclude(&verdict);
}

static void no_handler(VIP_VI_HANDLE vi, VIP_CQ_HANDLE cq)
{
    struct verdict verdict = {187, 0, 0, "no handler"};

    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipSendNotify(vi, NULL, NULL));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipRecvNotify(vi, NULL, NULL));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipCQNotify(cq, NULL, NULL));
    conclude(&verdict);
}

int main(void)
{
    const char   *device = test_start();
    struct nic    nic;
    struct memory memory;
    struct calls  calls = {NULL, NULL, NULL, NULL, NULL};
    union address address;
    VIP_CQ_HANDLE cq;
    VIP_VI_HANDLE vi, bound;

    nic_open(&nic, device);
    memory_get(&nic, &memory, 4096, VIP_FALSE);
    address_of(&nic, &address, NULL, "nobody");
    MUST(VipCreateCQ(nic.handle, 16, &cq));
    vi = vi_create(&nic, NULL, NULL, VIP_FALSE);
    bound = vi_create(&nic, cq, cq, VIP_FALSE);
    calls.nic = &nic;
    calls.memory = &memory;
    calls.vi = vi;
    calls.address = &address;

    levels(&nic);
    destroyed(&calls, vi_create(&nic, NULL, NULL, VIP_FALSE));
    used_up(&calls, &nic);
    empty(vi, bound);
    no_handler(vi, cq);

    vi_close(bound);
    vi_close(vi);
    MUST(VipDestroyCQ(cq));
    memory_put(&nic, &memory);
    nic_close(&nic);
    return test_failed;
}
