/*
 * legacy_mpich_nt - statement 210, as MPICH-NT used cLAN: Giganet's names, memory registered without attributes, the completion
 * queue grown after each connection, private data straight after the descriptor, extensions looked up at run time.
 *
 * A descriptor of Giganet's header ends after one data segment, at byte 48, and the program's own data starts there.  Here that is
 * inside VIP_DESCRIPTOR, which is why the provider must not touch what SegCount does not cover.
 */
#include "test.h"

#include <dlfcn.h>

enum { CLIENTS = 4, DEPTH = 8, WINDOW = DEPTH / 2, MESSAGES = 100, SIZE = 4000, GIGANET_DESCRIPTOR = 48 };

/* At byte 48 of the descriptor. */
struct own {
    VIP_DESCRIPTOR *next; /* the program's list: Control.Next is the provider's */
    VIP_UINT32      serial;
    VIP_UINT32      guard;
};

struct place {
    VIP_DESCRIPTOR recv[DEPTH], send, ack[DEPTH];
    VIP_UINT8      in[DEPTH][SIZE], out[SIZE];
};

struct connection {
    struct place  *place;
    VIP_MEM_HANDLE handle;
    VIP_VI_HANDLE  vi;
    int            acks;  /* server: posted */
    int            acked; /* server: of those, completed; client: received */
};

static struct own *own(VIP_DESCRIPTOR *descriptor)
{
    return (struct own *)(void *)((char *)descriptor + GIGANET_DESCRIPTOR);
}

static void fill(struct connection *connection, VIP_DESCRIPTOR *descriptor, VIP_UINT8 *buffer, VIP_UINT32 serial)
{
    memset(descriptor, 0, GIGANET_DESCRIPTOR);
    descriptor->Control.Control = VIP_CONTROL_OP_SENDRECV;
    descriptor->Control.SegCount = 1;
    descriptor->Control.Length = SIZE;
    descriptor->Data[0].Data.AddressBits = (uintptr_t)buffer;
    descriptor->Data[0].Handle = connection->handle;
    descriptor->Data[0].Length = SIZE;
    own(descriptor)->next = descriptor;
    own(descriptor)->serial = serial;
    own(descriptor)->guard = 0xC1A40000U + serial;
}

static void intact(VIP_DESCRIPTOR *descriptor, VIP_UINT32 serial)
{
    NEED(own(descriptor)->next == descriptor);
    NEED(own(descriptor)->serial == serial && own(descriptor)->guard == 0xC1A40000U + serial);
}

static void make(struct nic *nic, struct connection *connection, VIP_CQ_HANDLE cq, VIP_ULONG wanted)
{
    VIP_VI_ATTRIBUTES attributes, assigned;
    VIP_VI_STATE      state;
    VIP_BOOLEAN       send_empty, recv_empty;
    void             *at;
    VIP_UINT32        i;

    NEED(posix_memalign(&at, VIP_DESCRIPTOR_ALIGNMENT, sizeof *connection->place) == 0);
    connection->place = at;
    connection->acks = connection->acked = 0;
    MUST(VipRegisterMem(nic->handle, at, sizeof *connection->place, NULL, &connection->handle));
    memset(&attributes, 0, sizeof attributes);
    attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
    attributes.MaxTransferSize = wanted < nic->attributes.MaxTransferSize ? wanted : nic->attributes.MaxTransferSize;
    MUST(VipCreateVi(nic->handle, &attributes, cq, cq, &connection->vi));
    MUST(VipQueryVi(connection->vi, &state, &assigned, &send_empty, &recv_empty));
    NEED(assigned.MaxTransferSize >= SIZE && assigned.Ptag == NULL);
    for (i = 0; i < DEPTH; i++) {
        fill(connection, &connection->place->recv[i], connection->place->in[i], i);
        MUST(VipPostRecv(connection->vi, &connection->place->recv[i], connection->handle));
    }
    fill(connection, &connection->place->send, connection->place->out, DEPTH);
}

static void unmake(struct nic *nic, struct connection *connection)
{
    vi_close(connection->vi);
    MUST(VipDeregisterMem(nic->handle, connection->place, connection->handle));
    free(connection->place);
}

/* The names are the library's promise: found and working, or not there. */
static void extensions(VIP_VI_HANDLE vi, void *mark)
{
    union {
        void *symbol;
        void (*set)(VIP_VI_HANDLE, VIP_PVOID);
        VIP_PVOID (*get)(VIP_VI_HANDLE);
    } set, get;

    NEED(dlsym(RTLD_DEFAULT, "VipAddTagCQ") == NULL);
    NEED(dlsym(RTLD_DEFAULT, "VipPostDeferredSends") == NULL);
    set.symbol = dlsym(RTLD_DEFAULT, "VipSetUserData");
    get.symbol = dlsym(RTLD_DEFAULT, "VipGetUserData");
    NEED(set.symbol && get.symbol);
    set.set(vi, mark);
    NEED(get.get(vi) == mark);
}

static void on_report(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
    NEED(!context);
    if (error->ErrorCode != VIP_ERROR_CONN_LOST)
        die("asynchronous error %d", (int)error->ErrorCode);
}

static void open_nic(struct nic *nic, const char *device)
{
    memset(nic, 0, sizeof *nic);
    MUST(VipOpenNic(device, &nic->handle));
    MUST(VipQueryNic(nic->handle, &nic->attributes));
    MUST(VipErrorCallback(nic->handle, NULL, on_report));
    MUST(VipNSInit(nic->handle, NULL));
    MUST(VipNSInit(nic->handle, NULL));
}

static void close_nic(struct nic *nic)
{
    MUST(VipErrorCallback(nic->handle, NULL, NULL));
    MUST(VipNSShutdown(nic->handle));
    MUST(VipCloseNic(nic->handle));
}

/* Posts the receive again and gives the sender leave for one message more. */
static void take(struct connection *connection, VIP_DESCRIPTOR *done)
{
    VIP_UINT32      index = (VIP_UINT32)(done - connection->place->recv);
    VIP_DESCRIPTOR *ack = &connection->place->ack[connection->acks % DEPTH];

    NEED(done->Control.Length == SIZE);
    NEED(connection->place->in[index][0] == connection->place->in[index][SIZE - 1]);
    intact(done, index);
    MUST(VipPostRecv(connection->vi, done, connection->handle)); /* status as it is */

    NEED(connection->acks++ - connection->acked < DEPTH);
    fill(connection, ack, NULL, index);
    ack->Control.SegCount = 0;
    ack->Control.Length = 0;
    ack->Control.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
    memset(&ack->Data[0], 0xC1, sizeof ack->Data[0]); /* not part of it, with SegCount 0 */
    MUST(VipPostSend(connection->vi, ack, connection->handle));
}

/* Takes the next completion; returns whether it was the last of its connection. */
static int serve_one(struct nic *nic, VIP_CQ_HANDLE cq, int *messages)
{
    struct connection *from;
    VIP_DESCRIPTOR    *done;
    VIP_VI_HANDLE      vi;
    VIP_BOOLEAN        recv_queue;
    VIP_RETURN         result;

    MUST(VipCQWait(cq, VIP_INFINITE, &vi, &recv_queue));
    from = VipGetUserData(vi);
    NEED(from && from->vi == vi);
    result = recv_queue ? VipRecvDone(vi, &done) : VipSendDone(vi, &done);
    if (result == VIP_DESCRIPTOR_ERROR) {
        NEED(done && done->Control.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
        unmake(nic, from);
        return 1;
    }
    MUST(result);
    if (recv_queue) {
        take(from, done);
        ++*messages;
    } else {
        NEED(done == &from->place->ack[from->acked++ % DEPTH]);
        NEED(done->Data[0].Handle == 0xC1C1C1C1U && done->Data[0].Length == 0xC1C1C1C1U);
    }
    return 0;
}

static int server(const struct sides *sides)
{
    struct nic        nic;
    struct connection clients[CLIENTS];
    union address     local;
    VIP_CQ_HANDLE     cq;
    VIP_ULONG         entries = 1;
    char              name[16];
    int               i, left, messages = 0;

    open_nic(&nic, sides->device);
    address_of(&nic, &local, NULL, test_name(name, sizeof name, sides->owner, 'm'));
    MUST(VipCreateCQ(nic.handle, entries, &cq));
    for (i = 0; i < CLIENTS; i++) {
        make(&nic, &clients[i], cq, 65536);
        extensions(clients[i].vi, &clients[i]);
        vi_serve(&nic, clients[i].vi, &local);
        entries += 2 * DEPTH;
        MUST(VipResizeCQ(cq, entries)); /* while earlier clients are sending */
    }
    for (left = CLIENTS; left > 0;)
        left -= serve_one(&nic, cq, &messages);
    NEED(messages == CLIENTS * MESSAGES);
    MUST(VipDestroyCQ(cq));
    close_nic(&nic);
    return 0;
}

static void await_ack(struct connection *self)
{
    VIP_DESCRIPTOR *done;

    completed(VipRecvWait(self->vi, SOON_MS, &done), &done);
    NEED(done->Control.Length == 0 && done->Control.Status & VIP_STATUS_IMMEDIATE);
    intact(done, (VIP_UINT32)(done - self->place->recv));
    MUST(VipPostRecv(self->vi, done, self->handle));
    self->acked++;
}

static int client(const struct sides *sides)
{
    struct nic        nic;
    struct connection self;
    union address     local, remote;
    VIP_DESCRIPTOR   *done;
    char              name[16];
    int               i;

    open_nic(&nic, sides->device);
    make(&nic, &self, NULL, 65536);
    address_of(&nic, &local, NULL, "client");
    address_of(&nic, &remote, NULL, test_name(name, sizeof name, sides->owner, 'm'));
    MUST(vi_request(self.vi, &local, &remote, 2 * SOON_MS));
    for (i = 0; i < MESSAGES; i++) {
        if (i - self.acked == WINDOW)
            await_ack(&self);
        memset(self.place->out, i, SIZE);
        MUST(VipPostSend(self.vi, &self.place->send, self.handle));
        completed(VipSendWait(self.vi, VIP_INFINITE, &done), &done);
        intact(done, DEPTH);
    }
    while (self.acked < MESSAGES)
        await_ack(&self);
    unmake(&nic, &self);
    close_nic(&nic);
    return 0;
}

int main(void)
{
    int (*const side[])(const struct sides *) = {server, client, client, client, client};

    ok(run_all(test_start(), 1 + CLIENTS, side), 210, "Giganet names, no attributes, growing CQ, data behind the descriptor");
    return test_failed;
}
