/*
 * abi_infinite - statement 16: 0xFFFFFFFF blocks without limit, like VIP_INFINITE.
 *
 * A test cannot wait for ever; it can see that the call still blocks DELAY_MS later, which a value taken for -1 ms, or one that
 * overflowed on its way to nanoseconds, would not, and that it then ends with what it waited for.
 */
#include "still.h"

enum { DELAY_MS = 300, FOREVERS = 2 };

static const VIP_ULONG forevers[FOREVERS] = {0xFFFFFFFFUL, VIP_INFINITE};

/* Something that happens on another thread, DELAY_MS from now. */
struct later {
    pthread_t thread;
    void (*act)(struct later *);
    struct nic    *nic;
    VIP_VI_HANDLE  vi;
    struct memory *memory;
    union address *local, *remote;
    pid_t          still;
    VIP_RETURN     result;
    double         start;
};

static void *later_run(void *argument)
{
    struct later *later = argument;

    pause_ms(DELAY_MS);
    later->act(later);
    return NULL;
}

static void later_start(struct later *later, void (*act)(struct later *))
{
    later->act = act;
    later->start = now_us();
    NEED(pthread_create(&later->thread, NULL, later_run, later) == 0);
}

static void later_end(struct later *later, struct verdict *verdict, VIP_RETURN waited, const char *call, VIP_ULONG timeout)
{
    double ms = (now_us() - later->start) / 1e3;

    NEED(pthread_join(later->thread, NULL) == 0);
    check(verdict, waited == VIP_SUCCESS, "%s(%#lx): %s", call, timeout, result_name(waited));
    check(verdict, later->result == VIP_SUCCESS, "%s(%#lx): the other side: %s", call, timeout, result_name(later->result));
    check(verdict, ms > DELAY_MS * 0.9, "%s(%#lx) ended after %.0f ms", call, timeout, ms);
}

static void act_send(struct later *later)
{
    VIP_DESCRIPTOR *descriptor = descriptor_at(later->memory, 1), *done;

    descriptor_fill(descriptor, VIP_CONTROL_IMMEDIATE, NULL, 0, 0);
    later->result = VipPostSend(later->vi, descriptor, later->memory->handle);
    if (later->result == VIP_SUCCESS)
        later->result = VipSendWait(later->vi, SOON_MS, &done);
}

static void act_request(struct later *later)
{
    VIP_VI_ATTRIBUTES attributes;

    later->result = VipConnectRequest(later->vi, &later->local->net, &later->remote->net, SOON_MS, &attributes);
}

static void act_peer_request(struct later *later)
{
    VIP_VI_ATTRIBUTES attributes;

    later->result = VipConnectPeerRequest(later->vi, &later->local->net, &later->remote->net, SOON_MS);
    if (later->result == VIP_SUCCESS)
        later->result = VipConnectPeerWait(later->vi, &attributes);
}

static void act_go_on(struct later *later)
{
    later->result = kill(later->still, SIGCONT) == 0 ? VIP_SUCCESS : VIP_ERROR_RESOURCE;
}

/* Sends to the process that stands still, until it goes on. */
static void sending(struct nic *nic, struct memory *memory, pid_t still, struct verdict *verdict)
{
    VIP_VI_HANDLE   vi = still_connect(nic);
    VIP_DESCRIPTOR *done;
    size_t          i;

    for (i = 0; i < FOREVERS; i++) {
        struct later later = {0};
        VIP_RETURN   result;

        later.still = still;
        still_await(still);
        descriptor_fill(descriptor_at(memory, 0), VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
        MUST(VipPostSend(vi, descriptor_at(memory, 0), memory->handle));
        later_start(&later, act_go_on);
        result = VipSendWait(vi, forevers[i], &done);
        later_end(&later, verdict, result, "VipSendWait", forevers[i]);
    }
    still_end(still, vi);
}

static void post_recv(VIP_VI_HANDLE vi, struct memory *memory)
{
    descriptor_fill(descriptor_at(memory, 0), VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
    MUST(VipPostRecv(vi, descriptor_at(memory, 0), memory->handle));
}

int main(void)
{
    struct verdict    verdict = {16, 0, 0, "0xFFFFFFFF and VIP_INFINITE block without limit"};
    const char       *device = test_start();
    pid_t             still = still_start(device, FOREVERS);
    struct nic        nic;
    struct memory     memory;
    union address     here, there, remote;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE   connection;
    VIP_CQ_HANDLE     cq;
    VIP_VI_HANDLE     server, client, found;
    VIP_BOOLEAN       recv_queue;
    VIP_DESCRIPTOR   *done;
    VIP_RETURN        result;
    char              name[16];
    size_t            i;

    nic_open(&nic, device);
    memory_get(&nic, &memory, 4096, VIP_FALSE);
    MUST(VipCreateCQ(nic.handle, 16, &cq));
    address_of(&nic, &here, NULL, "client");
    address_of(&nic, &there, NULL, test_name(name, sizeof name, getpid(), 'i'));

    for (i = 0; i < FOREVERS; i++) {
        VIP_ULONG         timeout = forevers[i];
        struct later      later = {0};
        struct requesting requesting;

        later.nic = &nic;
        later.memory = &memory;
        later.local = &here;
        later.remote = &there;

        /* The server waits, then the queue without a CQ. */
        server = vi_create(&nic, NULL, NULL, VIP_FALSE);
        client = vi_create(&nic, NULL, NULL, VIP_FALSE);
        later.vi = client;
        memset(&remote, 0, sizeof remote);
        later_start(&later, act_request);
        result = VipConnectWait(nic.handle, &there.net, timeout, &remote.net, &attributes, &connection);
        if (result == VIP_SUCCESS)
            result = VipConnectAccept(connection, server);
        later_end(&later, &verdict, result, "VipConnectWait", timeout);
        post_recv(server, &memory);
        later_start(&later, act_send);
        result = VipRecvWait(server, timeout, &done);
        later_end(&later, &verdict, result, "VipRecvWait", timeout);
        vi_close(client);
        vi_close(server);

        /* The client waits, then the completion queue. */
        server = vi_create(&nic, NULL, cq, VIP_FALSE);
        client = vi_create(&nic, NULL, NULL, VIP_FALSE);
        request_start(&requesting, client, &here, &there, timeout);
        connection = await_request(&nic, &there, timeout);
        pause_ms(DELAY_MS);
        RETURNS(&verdict, VIP_SUCCESS, VipConnectAccept(connection, server));
        RETURNS(&verdict, VIP_SUCCESS, request_end(&requesting));
        later.vi = client;
        post_recv(server, &memory);
        later_start(&later, act_send);
        result = VipCQWait(cq, timeout, &found, &recv_queue);
        check(&verdict, result != VIP_SUCCESS || (found == server && recv_queue), "VipCQWait names another queue");
        later_end(&later, &verdict, result, "VipCQWait", timeout);
        vi_close(client);
        vi_close(server);

        /* A peer waits. */
        server = vi_create(&nic, NULL, NULL, VIP_FALSE);
        client = vi_create(&nic, NULL, NULL, VIP_FALSE);
        later.vi = client;
        later_start(&later, act_peer_request);
        result = VipConnectPeerRequest(server, &there.net, &here.net, timeout);
        if (result == VIP_SUCCESS)
            result = VipConnectPeerWait(server, &attributes);
        later_end(&later, &verdict, result, "VipConnectPeerWait", timeout);
        vi_close(client);
        vi_close(server);
    }

    if (still)
        sending(&nic, &memory, still, &verdict);
    else
        puts("# 16: not VipSendWait: no process can stand still where the network is within one");
    MUST(VipDestroyCQ(cq));
    memory_put(&nic, &memory);
    nic_close(&nic);
    conclude(&verdict);
    return test_failed;
}
