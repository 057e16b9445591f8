/* abi_connect - statement 71, where this side lacks something, and 82: the caller's room for the address of the one who asks. */
#include "test.h"

#include <sys/resource.h>

enum { HEAD = offsetof(VIP_NET_ADDRESS, HostAddress), UNTOUCHED = 0xa5 };

/* What the waiter presets, and how much of the discriminator it must get. */
struct room {
    const char *what;
    int         host_length, discriminator_length;
    size_t      kept;
};

static void waited(struct verdict *verdict, struct nic *nic, VIP_VI_HANDLE vi, const struct room *room, const char *asker)
{
    struct requesting requesting;
    VIP_VI_ATTRIBUTES attributes;
    VIP_CONN_HANDLE   connection;
    union address     local, remote, found;
    size_t            host_length = nic->attributes.NicAddressLen, end = HEAD + host_length + room->kept, i;
    char              name[16];

    address_of(nic, &local, NULL, asker);
    address_of(nic, &remote, NULL, test_name(name, sizeof name, getpid(), 'c'));
    memset(&found, UNTOUCHED, sizeof found);
    found.net.HostAddressLen = (VIP_UINT16)room->host_length;
    found.net.DiscriminatorLen = (VIP_UINT16)room->discriminator_length;

    request_start(&requesting, vi, &local, &remote, SOON_MS);
    MUST(VipConnectWait(nic->handle, &remote.net, SOON_MS, &found.net, &attributes, &connection));
    MUST(VipConnectReject(connection));
    RETURNS(verdict, VIP_REJECT, request_end(&requesting));

    check(verdict, found.net.HostAddressLen == host_length, "%s: a host address of %u bytes", room->what,
          found.net.HostAddressLen);
    check(verdict, found.net.DiscriminatorLen == room->kept, "%s: a discriminator of %u bytes, not %zu", room->what,
          found.net.DiscriminatorLen, room->kept);
    check(verdict, memcmp(found.bytes + HEAD, local.bytes + HEAD, host_length + room->kept) == 0, "%s: another address",
          room->what);
    for (i = end; i < sizeof found.bytes && found.bytes[i] == UNTOUCHED; i++)
        continue;
    check(verdict, i == sizeof found.bytes, "%s: byte %zu was written, behind %zu", room->what, i, end);
}

static void preset(struct nic *nic)
{
    struct verdict verdict = {82, 0, 0, "the room for the client's address is not overrun"};
    const int      host = nic->attributes.NicAddressLen, most = nic->attributes.MaxDiscriminatorLen;
    char           asker[64];
    struct room    rooms[] = {
        {"room for all", 0, 0, 0}, {"room for all but a byte", 0, 0, 0}, {"room for one byte", 0, 0, 0},
        {"room for the host", 0, 0, 0}, {"nothing preset", 0, 0, 0}, {"garbage preset", 0, 0, 0},
        {"too long a discriminator preset", 0, 0, 0},
    };
    const int      presets[][3] = {
        {host, most, most}, {host, most - 1, most - 1}, {host, 1, 1}, {host, 0, 0}, {0, 0, most}, {0xeeee, 0xeeee, most},
        {host, most + 1, most},
    };
    VIP_VI_HANDLE  vi = vi_create(nic, NULL, NULL, VIP_FALSE);
    size_t         i;

    NEED(most > 0 && (size_t)most < sizeof asker);
    for (i = 0; i < (size_t)most; i++)
        asker[i] = (char)('a' + i % 26);
    asker[most] = '\0';
    for (i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
        rooms[i].host_length = presets[i][0];
        rooms[i].discriminator_length = presets[i][1];
        rooms[i].kept = (size_t)presets[i][2];
        waited(&verdict, nic, vi, &rooms[i], asker);
    }
    vi_close(vi);
    conclude(&verdict);
}

/* What an accept lacked may be there the next time: the client has not been told, and the handle stays valid. */
static void lacking(struct nic *nic)
{
    struct verdict    verdict = {71, 0, 0, "an accept that lacked descriptors succeeds when it is made again"};
    struct requesting requesting;
    struct rlimit     before, few;
    VIP_VI_HANDLE     server = vi_create(nic, NULL, NULL, VIP_FALSE), client = vi_create(nic, NULL, NULL, VIP_FALSE);
    VIP_CONN_HANDLE   connection;
    union address     local, remote;
    char              name[16];
    int               lowest;

    address_of(nic, &local, NULL, "client");
    address_of(nic, &remote, NULL, test_name(name, sizeof name, getpid(), 'l'));
    request_start(&requesting, client, &local, &remote, SOON_MS);
    connection = await_request(nic, &remote, SOON_MS);

    NEED(getrlimit(RLIMIT_NOFILE, &before) == 0);
    lowest = dup(STDOUT_FILENO);
    NEED(lowest >= 0 && close(lowest) == 0);
    few = before;
    few.rlim_cur = (rlim_t)lowest;
    NEED(setrlimit(RLIMIT_NOFILE, &few) == 0);
    RETURNS(&verdict, VIP_ERROR_RESOURCE, VipConnectAccept(connection, server));
    NEED(setrlimit(RLIMIT_NOFILE, &before) == 0);

    RETURNS(&verdict, VIP_SUCCESS, VipConnectAccept(connection, server));
    RETURNS(&verdict, VIP_SUCCESS, request_end(&requesting));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipConnectAccept(connection, server));
    vi_close(client);
    vi_close(server);
    conclude(&verdict);
}

int main(void)
{
    const char *device = test_start();
    struct nic  nic;

    nic_open(&nic, device);
    preset(&nic);
    /* The network of that one needs no descriptors. */
    if (strncmp(device, "sim", 3) != 0)
        lacking(&nic);
    nic_close(&nic);
    return test_failed;
}
