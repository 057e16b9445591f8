/*
 * abi_fork - statement 205: after fork the child's calls with old handles are refused and the parent's VI keeps working; the child
 * may open the device for itself, and wait where a thread of its parent's waited when it was forked.
 */
#include "calls.h"

static void transfer(struct verdict *verdict, VIP_VI_HANDLE from, VIP_VI_HANDLE to, struct memory *memory, VIP_UINT8 value)
{
    VIP_DESCRIPTOR *recv = descriptor_at(memory, 0), *send = descriptor_at(memory, 1), *done;
    VIP_UINT8      *in = memory->at + 1024, *out = memory->at + 2048;

    *in = 0;
    *out = value;
    descriptor_fill(recv, VIP_CONTROL_OP_SENDRECV, in, memory->handle, 1);
    descriptor_fill(send, VIP_CONTROL_OP_SENDRECV, out, memory->handle, 1);
    RETURNS(verdict, VIP_SUCCESS, VipPostRecv(to, recv, memory->handle));
    RETURNS(verdict, VIP_SUCCESS, VipPostSend(from, send, memory->handle));
    RETURNS(verdict, VIP_SUCCESS, VipSendWait(from, SOON_MS, &done));
    RETURNS(verdict, VIP_SUCCESS, VipRecvWait(to, SOON_MS, &done));
    check(verdict, *in == value, "%u arrived instead of %u", *in, value);
}

/* A thread of the parent's, which turns away whom it gets. */
struct waiting {
    struct nic   *nic;
    union address address;
    VIP_RETURN    result;
    pthread_t     thread;
};

static void *waiting_run(void *argument)
{
    struct waiting   *waiting = argument;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE   connection;
    union address     remote;

    memset(&remote, 0, sizeof remote);
    waiting->result =
        VipConnectWait(waiting->nic->handle, &waiting->address.net, SOON_MS, &remote.net, &attributes, &connection);
    if (waiting->result == VIP_SUCCESS)
        waiting->result = VipConnectReject(connection);
    return NULL;
}

/* Asks until somebody lets it in. */
static void *asking_run(void *argument)
{
    struct requesting *asking = argument;
    double             end = now_us() + SOON_MS * 1e3;

    do
        requesting_run(asking);
    while (asking->result == VIP_REJECT && now_us() < end);
    return NULL;
}

/* Where the parent's thread waits, which the child does not have. */
static void child_waits(struct verdict *verdict, const char *device, const union address *door)
{
    struct nic        nic;
    struct requesting asking;
    union address     local, remote = *door;
    VIP_VI_HANDLE     vis[2];

    nic_open(&nic, device);
    vis[0] = vi_create(&nic, NULL, NULL, VIP_FALSE);
    vis[1] = vi_create(&nic, NULL, NULL, VIP_FALSE);
    address_of(&nic, &local, NULL, "client");
    asking.vi = vis[1];
    asking.local = &local;
    asking.remote = &remote;
    asking.timeout_ms = SOON_MS;
    NEED(pthread_create(&asking.thread, NULL, asking_run, &asking) == 0);
    RETURNS(verdict, VIP_SUCCESS, VipConnectAccept(await_request(&nic, &remote, SOON_MS), vis[0]));
    RETURNS(verdict, VIP_SUCCESS, request_end(&asking));
    vi_close(vis[0]);
    vi_close(vis[1]);
    nic_close(&nic);
}

/* Two VIs of the child's, connected to each other. */
static void child_of_its_own(struct verdict *verdict, const char *device)
{
    struct nic    nic;
    struct memory memory;
    VIP_VI_HANDLE vis[2];

    nic_open(&nic, device);
    memory_get(&nic, &memory, 4096, VIP_FALSE);
    vis[0] = vi_create(&nic, NULL, NULL, VIP_FALSE);
    vis[1] = vi_create(&nic, NULL, NULL, VIP_FALSE);
    connect_pair(&nic, vis[0], vis[1], 'o');
    transfer(verdict, vis[0], vis[1], &memory, 4);
    vi_close(vis[0]);
    vi_close(vis[1]);
    memory_put(&nic, &memory);
    nic_close(&nic);
}

/* Ends by exit, so that whatever the library does at exit happens in the child too. */
__attribute__((noreturn)) static void child(const struct calls *calls, const char *device, const VIP_VI_HANDLE *vis,
                                            VIP_CQ_HANDLE cq, VIP_CONN_HANDLE connection,
                                            const union address *door)
{
    limit_time();
    calls_with_nic(calls, calls->nic->handle, "the parent's NIC");
    calls_with_vi(calls, vis[0], "the parent's VI");
    calls_with_vi(calls, vis[1], "the parent's other VI");
    calls_with_cq(calls, cq, "the parent's CQ");
    calls_with_connection(calls, connection, "the parent's connection");
    child_of_its_own(calls->verdict, device);
    if (door)
        child_waits(calls->verdict, device, door);
    calls_with_vi(calls, vis[0], "the parent's VI, again");
    exit(calls->verdict->failures > 0);
}

int main(void)
{
    struct verdict    verdict = {205, 0, 0, "after fork"};
    const char       *device = test_start();
    struct nic        nic;
    struct memory     memory;
    struct calls      calls;
    struct requesting requesting;
    struct waiting    waiting;
    union address     address, local;
    VIP_CQ_HANDLE     cq;
    VIP_VI_HANDLE     vis[2], pending, accepting;
    VIP_CONN_HANDLE   connection;
    pid_t             pid;
    int               status = -1;
    char              name[16];
    /* The network of sim is within one process. */
    int               has_door = strcmp(device, "sim") != 0;

    nic_open(&nic, device);
    if (has_door) {
        waiting.nic = &nic;
        address_of(&nic, &waiting.address, NULL, test_name(name, sizeof name, getpid(), 'd'));
        NEED(pthread_create(&waiting.thread, NULL, waiting_run, &waiting) == 0);
    }
    memory_get(&nic, &memory, 4096, VIP_FALSE);
    MUST(VipCreateCQ(nic.handle, 16, &cq));
    vis[0] = vi_create(&nic, NULL, NULL, VIP_FALSE);
    vis[1] = vi_create(&nic, NULL, NULL, VIP_FALSE);
    connect_pair(&nic, vis[0], vis[1], 'f');
    transfer(&verdict, vis[0], vis[1], &memory, 1);

    /* A request that is still unanswered while the child tries to answer it. */
    pending = vi_create(&nic, NULL, NULL, VIP_FALSE);
    accepting = vi_create(&nic, NULL, NULL, VIP_FALSE);
    address_of(&nic, &local, NULL, "client");
    address_of(&nic, &address, NULL, test_name(name, sizeof name, getpid(), 'g'));
    request_start(&requesting, pending, &local, &address, SOON_MS);
    connection = await_request(&nic, &address, SOON_MS);

    calls.verdict = &verdict;
    calls.nic = &nic;
    calls.memory = &memory;
    calls.vi = accepting;
    calls.address = &address;
    fflush(NULL);
    pid = fork();
    NEED(pid >= 0);
    if (pid == 0)
        child(&calls, device, vis, cq, connection, has_door ? &waiting.address : NULL);
    NEED(waitpid(pid, &status, 0) == pid);
    check(&verdict, WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %#x", (unsigned)status);

    transfer(&verdict, vis[0], vis[1], &memory, 2);
    transfer(&verdict, vis[1], vis[0], &memory, 3);
    RETURNS(&verdict, VIP_SUCCESS, VipConnectAccept(connection, accepting));
    RETURNS(&verdict, VIP_SUCCESS, request_end(&requesting));
    if (has_door) {
        NEED(pthread_join(waiting.thread, NULL) == 0);
        RETURNS(&verdict, VIP_SUCCESS, waiting.result);
    }

    vi_close(pending);
    vi_close(accepting);
    vi_close(vis[0]);
    vi_close(vis[1]);
    MUST(VipDestroyCQ(cq));
    memory_put(&nic, &memory);
    nic_close(&nic);
    conclude(&verdict);
    return test_failed;
}
