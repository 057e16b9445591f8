/*
 * abi_fork - statement 205: after fork the child's calls with old handles are refused and the parent's VI keeps working; the child
 * may open the device for itself.
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
                                            VIP_CQ_HANDLE cq, VIP_CONN_HANDLE connection)
{
    limit_time();
    calls_with_nic(calls, calls->nic->handle, "the parent's NIC");
    calls_with_vi(calls, vis[0], "the parent's VI");
    calls_with_vi(calls, vis[1], "the parent's other VI");
    calls_with_cq(calls, cq, "the parent's CQ");
    calls_with_connection(calls, connection, "the parent's connection");
    child_of_its_own(calls->verdict, device);
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
    union address     address, local;
    VIP_CQ_HANDLE     cq;
    VIP_VI_HANDLE     vis[2], pending, accepting;
    VIP_CONN_HANDLE   connection;
    pid_t             pid;
    int               status = -1;
    char              name[16];

    nic_open(&nic, device);
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
        child(&calls, device, vis, cq, connection);
    NEED(waitpid(pid, &status, 0) == pid);
    check(&verdict, WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %#x", (unsigned)status);

    transfer(&verdict, vis[0], vis[1], &memory, 2);
    transfer(&verdict, vis[1], vis[0], &memory, 3);
    RETURNS(&verdict, VIP_SUCCESS, VipConnectAccept(connection, accepting));
    RETURNS(&verdict, VIP_SUCCESS, request_end(&requesting));

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
