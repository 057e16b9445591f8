/*
 * multivi - one server, many clients, one completion queue.
 *
 * The server has a VI for each client and binds both queues of every VI to one completion queue, so that one call waits for all.
 * Each client sends numbered requests and gets each number doubled.
 */
#include "../common.h"

enum { LIMIT_MS = 10000, RECVS = 4, CLIENTS_MAX = 64 };

struct options {
    const char *device, *host, *name;
    long        clients, count;
};

struct message {
    VIP_UINT32 client;
    VIP_UINT32 number;
};

/* The registered memory of one connection. */
struct block {
    VIP_DESCRIPTOR send;
    VIP_DESCRIPTOR recv[RECVS];
    struct message out;
    struct message in[RECVS];
};

struct peer {
    struct memory   memory;
    struct block   *block;
    VIP_VI_HANDLE   vi;
    VIP_UINT32      served;
    int             sending; /* block->send is on the queue */
    VIP_DESCRIPTOR *held;    /* a request that came before the last answer was done */
    int             leaving;
};

static void open_peer(struct nic *nic, struct peer *peer, VIP_CQ_HANDLE cq)
{
    memset(peer, 0, sizeof *peer);
    memory_get(nic, &peer->memory, sizeof *peer->block, VIP_FALSE);
    peer->block = (struct block *)(void *)peer->memory.at;
    peer->vi = vi_create(nic, cq, cq, VIP_FALSE);
}

static void close_peer(struct nic *nic, struct peer *peer)
{
    vi_close(peer->vi);
    memory_put(nic, &peer->memory);
    peer->vi = NULL;
}

static void post_recv(struct peer *peer, size_t index)
{
    descriptor_fill(&peer->block->recv[index], VIP_CONTROL_OP_SENDRECV, &peer->block->in[index], peer->memory.handle,
                    sizeof peer->block->in[index]);
    MUST(VipPostRecv(peer->vi, &peer->block->recv[index], peer->memory.handle));
}

/* A message of no length, with immediate data, is a goodbye. */
static void post_send(struct peer *peer, const struct message *message)
{
    if (message)
        peer->block->out = *message;
    descriptor_fill(&peer->block->send, message ? VIP_CONTROL_OP_SENDRECV : VIP_CONTROL_IMMEDIATE, &peer->block->out,
                    peer->memory.handle, message ? sizeof peer->block->out : 0);
    MUST(VipPostSend(peer->vi, &peer->block->send, peer->memory.handle));
}

static void serve_request(struct peer *peer, VIP_DESCRIPTOR *done)
{
    size_t         index = (size_t)(done - peer->block->recv);
    struct message message = peer->block->in[index];
    int            goodbye = (done->CS.Status & VIP_STATUS_IMMEDIATE) != 0;

    post_recv(peer, index);
    peer->sending = 1;
    if (goodbye) {
        peer->leaving = 1;
        post_send(peer, NULL);
    } else {
        NEED(done->CS.Length == sizeof message);
        message.number *= 2;
        peer->served++;
        post_send(peer, &message);
    }
}

static int server(const struct options *options)
{
    struct nic    nic;
    struct peer   peers[CLIENTS_MAX];
    union address local;
    VIP_CQ_HANDLE cq;
    size_t        i, j, clients = (size_t)options->clients, present = clients;

    nic_open(&nic, options->device);
    address_of(&nic, &local, NULL, options->name);
    MUST(VipCreateCQ(nic.handle, (VIP_ULONG)(clients * (RECVS + 1)), &cq));
    for (i = 0; i < clients; i++) {
        open_peer(&nic, &peers[i], cq);
        for (j = 0; j < RECVS; j++)
            post_recv(&peers[i], j);
        vi_serve(&nic, peers[i].vi, &local);
    }

    while (present > 0) {
        VIP_VI_HANDLE   vi;
        VIP_BOOLEAN     recv;
        VIP_DESCRIPTOR *done;
        VIP_RETURN      result;

        MUST(VipCQWait(cq, VIP_INFINITE, &vi, &recv));
        for (i = 0; i < clients && peers[i].vi != vi; i++)
            continue;
        NEED(i < clients);
        result = recv ? VipRecvDone(vi, &done) : VipSendDone(vi, &done);
        if (result == VIP_DESCRIPTOR_ERROR && done && peers[i].leaving) {
            NEED(done->CS.Status & VIP_STATUS_DESC_FLUSHED_ERROR);
            printf("client %zu has gone after %u requests\n", i, (unsigned)peers[i].served);
            close_peer(&nic, &peers[i]); /* takes the VI's other entries out of the completion queue */
            present--;
            continue;
        }
        completed(result, &done);
        if (!recv) {
            peers[i].sending = 0;
            done = peers[i].held;
            peers[i].held = NULL;
        } else if (peers[i].sending) {
            NEED(!peers[i].held); /* a client has one request on the way */
            peers[i].held = done;
            done = NULL;
        }
        if (done)
            serve_request(&peers[i], done);
    }
    MUST(VipDestroyCQ(cq));
    nic_close(&nic);
    return 0;
}

static int client(const struct options *options, VIP_UINT32 number)
{
    struct nic      nic;
    struct peer     self;
    union address   local, remote;
    struct message  message;
    VIP_DESCRIPTOR *done;
    VIP_RETURN      result;
    long            i;

    nic_open(&nic, options->device);
    open_peer(&nic, &self, NULL);
    address_of(&nic, &local, NULL, "multivi-client");
    address_of(&nic, &remote, options->host, options->name);
    result = vi_request(self.vi, &local, &remote, LIMIT_MS);
    if (result != VIP_SUCCESS)
        die("cannot connect to '%s': %s", options->name, result_name(result));

    for (i = 0; i <= options->count; i++) {
        int goodbye = i == options->count;

        message.client = number;
        message.number = (VIP_UINT32)i;
        post_recv(&self, 0);
        post_send(&self, goodbye ? NULL : &message);
        completed(VipSendWait(self.vi, VIP_INFINITE, &done), &done);
        completed(VipRecvWait(self.vi, LIMIT_MS, &done), &done);
        if (goodbye) {
            NEED(done->CS.Status & VIP_STATUS_IMMEDIATE);
        } else {
            NEED(done->CS.Length == sizeof message);
            NEED(self.block->in[0].client == number && self.block->in[0].number == 2 * message.number);
        }
    }
    close_peer(&nic, &self);
    nic_close(&nic);
    return 0;
}

static int either(int index, const void *options)
{
    return index == 0 ? server(options) : client(options, (VIP_UINT32)index);
}

int main(int argc, char **argv)
{
    static const char words[] = "server|client|--self [options]";
    struct options    options = {"shm", NULL, "multivi", 4, 1000};
    int               self = 0;
    const struct option known[] = {
        {"device", &options.device, NULL, NULL, "device name (shm)"},
        {"host", &options.host, NULL, NULL, "client: the server's host, for the name service (this host)"},
        {"name", &options.name, NULL, NULL, "discriminator, at most 16 letters (multivi)"},
        {"clients", NULL, &options.clients, NULL, "server: how many to expect, at most 64 (4)"},
        {"count", NULL, &options.count, NULL, "client: requests (1000)"},
        {"self", NULL, NULL, &self, "start the server and its clients"},
        {NULL, NULL, NULL, NULL, NULL},
    };
    const char *side = arguments(argc, argv, words, known);

    if (options.clients == 0 || options.clients > CLIENTS_MAX)
        usage(argv[0], words, known);
    if (self)
        return !run_sides(1 + (int)options.clients, either, &options);
    if (side && strcmp(side, "server") == 0)
        return server(&options);
    if (side && strcmp(side, "client") == 0)
        return client(&options, (VIP_UINT32)getpid());
    usage(argv[0], words, known);
}
