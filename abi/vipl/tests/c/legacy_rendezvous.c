/*
 * legacy_rendezvous - statement 210, rendezvous by RDMA write, completed by immediate data.
 *
 * A sender asks to send; the receiver registers its buffer and answers with address and handle; the sender writes it in pieces
 * of 32000 bytes, the last one with immediate data, which consumes a receive of no segments.
 */
#include "test.h"

enum { TRANSFERS = 8, BYTES = 1000000, PIECE = 32000, PIECES = (BYTES + PIECE - 1) / PIECE };

struct offer {
    VIP_UINT64     address;
    VIP_MEM_HANDLE handle;
    VIP_UINT32     length;
};

struct place {
    VIP_DESCRIPTOR recv, ctrl, piece[PIECES];
    struct offer   in, out;
};

struct end {
    struct nic    nic;
    struct memory memory;
    struct place *place;
    VIP_VI_HANDLE vi;
};

static VIP_UINT8 pattern(int transfer, size_t at)
{
    return (VIP_UINT8)(at * 7 + (at >> 8) + (size_t)transfer);
}

static void open_end(struct end *end, const struct sides *sides)
{
    nic_open(&end->nic, sides->device);
    memory_get(&end->nic, &end->memory, sizeof *end->place, VIP_FALSE);
    end->place = (struct place *)(void *)end->memory.at;
    end->vi = vi_create(&end->nic, NULL, NULL, VIP_TRUE);
}

static void close_end(struct end *end)
{
    vi_close(end->vi);
    memory_put(&end->nic, &end->memory);
    nic_close(&end->nic);
}

static void post_recv(struct end *end)
{
    descriptor_fill(&end->place->recv, VIP_CONTROL_OP_SENDRECV, &end->place->in, end->memory.handle, sizeof end->place->in);
    MUST(VipPostRecv(end->vi, &end->place->recv, end->memory.handle));
}

static void send_offer(struct end *end)
{
    VIP_DESCRIPTOR *done;

    descriptor_fill(&end->place->ctrl, VIP_CONTROL_OP_SENDRECV, &end->place->out, end->memory.handle, sizeof end->place->out);
    MUST(VipPostSend(end->vi, &end->place->ctrl, end->memory.handle));
    completed(VipSendWait(end->vi, VIP_INFINITE, &done), &done);
}

/* Receives. */
static int server(const struct sides *sides)
{
    struct end      end;
    union address   local;
    VIP_DESCRIPTOR *done;
    char            name[16];
    int             transfer;

    open_end(&end, sides);
    address_of(&end.nic, &local, NULL, test_name(name, sizeof name, sides->owner, 'r'));
    post_recv(&end);
    vi_serve(&end.nic, end.vi, &local);
    for (transfer = 0; transfer < TRANSFERS; transfer++) {
        struct memory buffer;
        size_t        i;

        done = completed(VipRecvWait(end.vi, SOON_MS, &done), &done);
        NEED((done->CS.Status & VIP_STATUS_OP_MASK) == VIP_STATUS_OP_RECEIVE);
        NEED(done->CS.Length == sizeof end.place->in && end.place->in.length == BYTES);
        memory_get(&end.nic, &buffer, BYTES, VIP_TRUE);
        descriptor_fill(&end.place->recv, VIP_CONTROL_OP_SENDRECV, NULL, 0, 0);
        MUST(VipPostRecv(end.vi, &end.place->recv, end.memory.handle)); /* for the immediate data */
        end.place->out.address = (uintptr_t)buffer.at;
        end.place->out.handle = buffer.handle;
        end.place->out.length = BYTES;
        send_offer(&end);

        done = completed(VipRecvWait(end.vi, SOON_MS, &done), &done);
        NEED((done->CS.Status & VIP_STATUS_OP_MASK) == VIP_STATUS_OP_REMOTE_RDMA_WRITE);
        NEED((done->CS.Status & VIP_STATUS_IMMEDIATE) && done->CS.ImmediateData == (VIP_UINT32)transfer);
        NEED(done->CS.Length == BYTES - (PIECES - 1) * PIECE);
        for (i = 0; i < BYTES; i++)
            if (buffer.at[i] != pattern(transfer, i))
                die("transfer %d: byte %zu is %u", transfer, i, buffer.at[i]);
        memory_put(&end.nic, &buffer);
        post_recv(&end);
        send_offer(&end); /* received */
    }
    vi_await_end(end.vi, SOON_MS);
    close_end(&end);
    return 0;
}

/* Sends. */
static int client(const struct sides *sides)
{
    struct end      end;
    struct memory   buffer;
    union address   local, remote;
    VIP_DESCRIPTOR *done;
    char            name[16];
    int             transfer;

    open_end(&end, sides);
    memory_get(&end.nic, &buffer, BYTES, VIP_FALSE);
    address_of(&end.nic, &local, NULL, "client");
    address_of(&end.nic, &remote, NULL, test_name(name, sizeof name, sides->owner, 'r'));
    MUST(vi_request(end.vi, &local, &remote, SOON_MS));
    for (transfer = 0; transfer < TRANSFERS; transfer++) {
        struct offer offer;
        size_t       i;

        for (i = 0; i < BYTES; i++)
            buffer.at[i] = pattern(transfer, i);
        post_recv(&end);
        end.place->out.length = BYTES;
        send_offer(&end);
        completed(VipRecvWait(end.vi, SOON_MS, &done), &done);
        offer = end.place->in;
        post_recv(&end);
        for (i = 0; i < PIECES; i++) {
            int        last = i == PIECES - 1;
            VIP_UINT32 length = last ? BYTES - (PIECES - 1) * PIECE : PIECE;

            descriptor_fill_rdma(&end.place->piece[i], (VIP_UINT16)(VIP_CONTROL_OP_RDMAWRITE | (last ? VIP_CONTROL_IMMEDIATE : 0)),
                                 offer.address + i * PIECE, offer.handle, buffer.at + i * PIECE, buffer.handle, length);
            end.place->piece[i].CS.ImmediateData = (VIP_UINT32)transfer;
            MUST(VipPostSend(end.vi, &end.place->piece[i], end.memory.handle));
        }
        for (i = 0; i < PIECES; i++) {
            done = completed(VipSendWait(end.vi, SOON_MS, &done), &done);
            NEED(done == &end.place->piece[i]);
            NEED((done->CS.Status & VIP_STATUS_OP_MASK) == VIP_STATUS_OP_RDMA_WRITE);
        }
        completed(VipRecvWait(end.vi, SOON_MS, &done), &done);
    }
    memory_put(&end.nic, &buffer);
    close_end(&end);
    return 0;
}

int main(void)
{
    ok(run_pair(test_start(), server, client), 210, "rendezvous by RDMA write with immediate data, %d of %d bytes", TRANSFERS, BYTES);
    return test_failed;
}
