/*
 * legacy_close - statement 210, the close sequence, as Iometer has it.
 *
 * All queues on one completion queue; (unsigned)~0 as timeout; VipConnectWait into a buffer full of garbage; a side that sees
 * "not connected" by VipQueryVi; then disconnect, drain both queues with the Done calls although entries for them are on the
 * completion queue, destroy the VI, and destroy the completion queue with its unread entries.
 */
#include "test.h"

enum { ROUNDS = 3, MESSAGES = 50, DEPTH = 8, SIZE = 1024 };

struct place {
    VIP_DESCRIPTOR recv[DEPTH], send;
    VIP_UINT8      in[DEPTH][SIZE], out[SIZE];
};

struct end {
    struct nic    nic;
    struct memory memory;
    struct place *place;
    VIP_CQ_HANDLE cq;
    VIP_VI_HANDLE vi;
};

static void post_recv(struct end *end, int index)
{
    descriptor_fill(&end->place->recv[index], VIP_CONTROL_OP_SENDRECV, end->place->in[index], end->memory.handle, SIZE);
    MUST(VipPostRecv(end->vi, &end->place->recv[index], end->memory.handle));
}

static void post_send(struct end *end, VIP_UINT8 value)
{
    memset(end->place->out, value, SIZE);
    descriptor_fill(&end->place->send, VIP_CONTROL_OP_SENDRECV, end->place->out, end->memory.handle, SIZE);
    MUST(VipPostSend(end->vi, &end->place->send, end->memory.handle));
}

/* The next completion; returns the receive's index, -1 for a send. */
static int next(struct end *end)
{
    VIP_VI_HANDLE   vi;
    VIP_BOOLEAN     recv_queue;
    VIP_DESCRIPTOR *done;

    MUST(VipCQWait(end->cq, (unsigned)~0, &vi, &recv_queue));
    NEED(vi == end->vi);
    MUST(recv_queue ? VipRecvDone(vi, &done) : VipSendDone(vi, &done));
    return recv_queue ? (int)(done - end->place->recv) : -1;
}

static void open_end(struct end *end, const struct sides *sides)
{
    int i;

    nic_open(&end->nic, sides->device);
    memory_get(&end->nic, &end->memory, sizeof *end->place, VIP_FALSE);
    end->place = (struct place *)(void *)end->memory.at;
    MUST(VipCreateCQ(end->nic.handle, 4 * DEPTH, &end->cq));
    end->vi = vi_create(&end->nic, end->cq, end->cq, VIP_FALSE);
    for (i = 0; i < DEPTH; i++)
        post_recv(end, i);
}

static void drain(VIP_VI_HANDLE vi, VIP_RETURN (*take)(VIP_VI_HANDLE, VIP_DESCRIPTOR **), int at_least)
{
    VIP_DESCRIPTOR *done;
    VIP_RETURN      result;
    int             count = 0;

    while ((result = take(vi, &done)) != VIP_DESCRIPTOR_ERROR || done) {
        NEED(result == VIP_SUCCESS || result == VIP_DESCRIPTOR_ERROR);
        count++;
    }
    NEED(count >= at_least);
}

static void close_end(struct end *end, int receives)
{
    MUST(VipDisconnect(end->vi));
    drain(end->vi, VipSendDone, 0);
    drain(end->vi, VipRecvDone, receives);
    MUST(VipDestroyVi(end->vi));
    MUST(VipDestroyCQ(end->cq));
    memory_put(&end->nic, &end->memory);
    nic_close(&end->nic);
}

static VIP_VI_STATE state_of(VIP_VI_HANDLE vi)
{
    VIP_VI_ATTRIBUTES attributes;
    VIP_VI_STATE      state;
    VIP_BOOLEAN       send_empty, recv_empty;

    MUST(VipQueryVi(vi, &state, &attributes, &send_empty, &recv_empty));
    return state;
}

static int server(const struct sides *sides)
{
    struct end        end;
    union address     local;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE   connection;
    VIP_NET_ADDRESS  *remote;
    VIP_RETURN        result;
    char              name[16];
    int               round, answered, index, held;

    for (round = 0; round < ROUNDS; round++) {
        open_end(&end, sides);
        address_of(&end.nic, &local, NULL, test_name(name, sizeof name, sides->owner, 'c'));
        remote = malloc(sizeof *remote + end.nic.attributes.NicAddressLen + end.nic.attributes.MaxDiscriminatorLen);
        NEED(remote != NULL);
        memset(remote, 0xEE, sizeof *remote + end.nic.attributes.NicAddressLen + end.nic.attributes.MaxDiscriminatorLen);
        while ((result = VipConnectWait(end.nic.handle, &local.net, 100, remote, &attributes, &connection)) == VIP_TIMEOUT)
            continue;
        MUST(result);
        NEED(remote->HostAddressLen == end.nic.attributes.NicAddressLen && remote->DiscriminatorLen == 6);
        NEED(memcmp(remote->HostAddress + remote->HostAddressLen, "client", 6) == 0);
        free(remote);
        MUST(VipConnectAccept(connection, end.vi));

        for (answered = 0, held = -1; answered < MESSAGES; answered++) {
            index = held >= 0 ? held : next(&end);
            NEED(index >= 0);
            NEED(end.place->in[index][0] == (VIP_UINT8)answered && end.place->in[index][SIZE - 1] == (VIP_UINT8)answered);
            post_recv(&end, index);
            post_send(&end, (VIP_UINT8)~answered);
            held = next(&end); /* the next request may be faster than the completion of this answer */
            if (held >= 0)
                NEED(next(&end) == -1);
        }
        while (state_of(end.vi) == VIP_STATE_CONNECTED)
            pause_ms(1);
        close_end(&end, DEPTH);
    }
    return 0;
}

static int client(const struct sides *sides)
{
    struct end    end;
    union address local, remote;
    char          name[16];
    int           round, asked, index;

    for (round = 0; round < ROUNDS; round++) {
        open_end(&end, sides);
        address_of(&end.nic, &local, NULL, "client");
        address_of(&end.nic, &remote, NULL, test_name(name, sizeof name, sides->owner, 'c'));
        MUST(vi_request(end.vi, &local, &remote, SOON_MS));
        for (asked = 0; asked < MESSAGES; asked++) {
            post_send(&end, (VIP_UINT8)asked);
            index = next(&end);
            if (index < 0)
                index = next(&end);
            else
                NEED(next(&end) == -1);
            NEED(index >= 0 && end.place->in[index][SIZE - 1] == (VIP_UINT8)~asked);
            post_recv(&end, index);
        }
        close_end(&end, DEPTH);
    }
    return 0;
}

int main(void)
{
    ok(run_pair(test_start(), server, client), 210, "close sequence, %d rounds", ROUNDS);
    return test_failed;
}
