/* abi_names - statements 195 to 201: the name service. */
#include "test.h"

enum { HEAD = offsetof(VIP_NET_ADDRESS, HostAddress), UNTOUCHED = 0xa5 };

static VIP_CHAR *own_host(void)
{
    static char name[256];

    NEED(gethostname(name, sizeof name - 1) == 0);
    return name;
}

static void own(struct nic *nic)
{
    struct verdict verdict = {195, 0, 0, "the own host's name gives the NIC's address"};
    VIP_CHAR       localhost[] = "localhost", *names[2];
    union address  found;
    size_t         i;

    names[0] = own_host();
    names[1] = localhost;
    RETURNS(&verdict, VIP_SUCCESS, VipNSInit(nic->handle, NULL));
    for (i = 0; i < 2; i++) {
        memset(&found, 0, sizeof found);
        RETURNS(&verdict, VIP_SUCCESS, VipNSGetHostByName(nic->handle, names[i], &found.net, 0));
        check(&verdict, found.net.HostAddressLen == nic->attributes.NicAddressLen, "%s: %u bytes", names[i],
              found.net.HostAddressLen);
        check(&verdict, memcmp(found.bytes + HEAD, nic->attributes.LocalNicAddress, nic->attributes.NicAddressLen) == 0,
              "%s has another address", names[i]);
    }
    RETURNS(&verdict, VIP_SUCCESS, VipNSShutdown(nic->handle));
    conclude(&verdict);
}

static void twice(struct nic *nic)
{
    struct verdict verdict = {196, 0, 0, "started twice"};
    union address  found;

    RETURNS(&verdict, VIP_SUCCESS, VipNSInit(nic->handle, NULL));
    RETURNS(&verdict, VIP_SUCCESS, VipNSInit(nic->handle, NULL));
    RETURNS(&verdict, VIP_SUCCESS, VipNSGetHostByName(nic->handle, own_host(), &found.net, 0));
    RETURNS(&verdict, VIP_SUCCESS, VipNSShutdown(nic->handle));
    conclude(&verdict);
}

static void unknown(struct nic *nic)
{
    struct verdict verdict = {197, 0, 0, "unknown names, and lookups before the start and after the end"};
    VIP_CHAR       names[][16] = {"no such host", "", ".", "localhos", "\xff\xfe"}, name[256];
    VIP_ULONG      length = sizeof name;
    union address  found, before, local;
    size_t         i;

    address_of(nic, &local, NULL, "");
    memset(&found, UNTOUCHED, sizeof found);
    before = found;
    RETURNS(&verdict, VIP_ERROR_NAMESERVICE, VipNSGetHostByName(nic->handle, own_host(), &found.net, 0));
    RETURNS(&verdict, VIP_ERROR_NAMESERVICE, VipNSGetHostByAddr(nic->handle, &local.net, name, &length));
    MUST(VipNSInit(nic->handle, NULL));
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        RETURNS(&verdict, VIP_ERROR_NAMESERVICE, VipNSGetHostByName(nic->handle, names[i], &found.net, 0));
    MUST(VipNSShutdown(nic->handle));
    RETURNS(&verdict, VIP_ERROR_NAMESERVICE, VipNSGetHostByName(nic->handle, own_host(), &found.net, 0));
    check(&verdict, memcmp(&found, &before, sizeof found) == 0, "a failed lookup wrote an address");
    check(&verdict, length == sizeof name, "a failed lookup wrote a length");
    conclude(&verdict);
}

static void within(struct nic *nic)
{
    struct verdict verdict = {198, 0, 0, "a lookup writes nothing behind the host part"};
    union address  found;
    size_t         end = HEAD + (size_t)nic->attributes.NicAddressLen, i;

    MUST(VipNSInit(nic->handle, NULL));
    memset(&found, UNTOUCHED, sizeof found);
    RETURNS(&verdict, VIP_SUCCESS, VipNSGetHostByName(nic->handle, own_host(), &found.net, 0));
    for (i = end; i < sizeof found.bytes && found.bytes[i] == UNTOUCHED; i++)
        continue;
    check(&verdict, i == sizeof found.bytes, "byte %zu was written, behind %zu", i, end);
    check(&verdict, found.net.DiscriminatorLen == 0, "a discriminator of %u bytes", found.net.DiscriminatorLen);
    MUST(VipNSShutdown(nic->handle));
    conclude(&verdict);
}

/* A table of our own: "twice" has two addresses. */
static void beyond(struct nic *nic)
{
    struct verdict verdict = {199, 0, 0, "an index beyond the last address"};
    char           path[] = "/tmp/abi_names.XXXXXX", twice_name[] = "twice";
    const char     table[] = "twice 2:0:0:0:0:1\ntwice 2:0:0:0:0:2\n";
    union address  found;
    int            file = mkstemp(path);

    NEED(file >= 0);
    NEED(write(file, table, sizeof table - 1) == (ssize_t)sizeof table - 1);
    NEED(close(file) == 0);
    RETURNS(&verdict, VIP_SUCCESS, VipNSInit(nic->handle, path));
    RETURNS(&verdict, VIP_SUCCESS, VipNSGetHostByName(nic->handle, twice_name, &found.net, 0));
    check(&verdict, found.bytes[HEAD + 5] == 1, "the first address ends in %u", found.bytes[HEAD + 5]);
    RETURNS(&verdict, VIP_SUCCESS, VipNSGetHostByName(nic->handle, twice_name, &found.net, 1));
    check(&verdict, found.bytes[HEAD + 5] == 2, "the second address ends in %u", found.bytes[HEAD + 5]);
    RETURNS(&verdict, VIP_ERROR_NAMESERVICE, VipNSGetHostByName(nic->handle, twice_name, &found.net, 2));
    RETURNS(&verdict, VIP_ERROR_NAMESERVICE, VipNSGetHostByName(nic->handle, own_host(), &found.net, 1));
    RETURNS(&verdict, VIP_ERROR_NAMESERVICE, VipNSGetHostByName(nic->handle, own_host(), &found.net, (VIP_ULONG)-1));
    RETURNS(&verdict, VIP_SUCCESS, VipNSShutdown(nic->handle));
    NEED(unlink(path) == 0);
    conclude(&verdict);
}

static void inverse(struct nic *nic)
{
    struct verdict verdict = {200, 0, 0, "an address gives the name; a short buffer is told the size it lacks"};
    union address  local, found;
    VIP_CHAR       name[256];
    VIP_ULONG      length = 1, needed, i;

    address_of(nic, &local, NULL, "");
    MUST(VipNSInit(nic->handle, NULL));
    memset(name, UNTOUCHED, sizeof name);
    RETURNS(&verdict, VIP_ERROR_RESOURCE, VipNSGetHostByAddr(nic->handle, &local.net, name, &length));
    needed = length;
    check(&verdict, needed > 1 && needed <= sizeof name, "it needs %lu bytes", (unsigned long)needed);
    NEED(needed > 1 && needed < sizeof name);
    length = needed - 1;
    RETURNS(&verdict, VIP_ERROR_RESOURCE, VipNSGetHostByAddr(nic->handle, &local.net, name, &length));
    check(&verdict, length == needed, "then it needs %lu bytes, not %lu", (unsigned long)length, (unsigned long)needed);
    for (i = 0; i < sizeof name && (VIP_UINT8)name[i] == UNTOUCHED; i++)
        continue;
    check(&verdict, i == sizeof name, "a name was written although it does not fit");

    RETURNS(&verdict, VIP_SUCCESS, VipNSGetHostByAddr(nic->handle, &local.net, name, &length));
    check(&verdict, length == needed && strlen(name) + 1 == needed, "\"%s\" in %lu bytes", name, (unsigned long)length);
    check(&verdict, (VIP_UINT8)name[needed] == UNTOUCHED, "a byte behind the name was written");
    memset(&found, 0, sizeof found);
    RETURNS(&verdict, VIP_SUCCESS, VipNSGetHostByName(nic->handle, name, &found.net, 0));
    check(&verdict, memcmp(found.bytes + HEAD, local.bytes + HEAD, local.net.HostAddressLen) == 0, "%s is elsewhere", name);
    MUST(VipNSShutdown(nic->handle));
    conclude(&verdict);
}

static void outlives(struct nic *nic)
{
    struct verdict    verdict = {201, 0, 0, "an address outlives the name service"};
    struct requesting requesting;
    union address     local, remote;
    VIP_VI_HANDLE     server = vi_create(nic, NULL, NULL, VIP_FALSE), client = vi_create(nic, NULL, NULL, VIP_FALSE);
    char              name[16];

    address_of(nic, &local, NULL, "client");
    address_of(nic, &remote, own_host(), test_name(name, sizeof name, getpid(), 'n'));
    MUST(VipNSShutdown(nic->handle));
    request_start(&requesting, client, &local, &remote, SOON_MS);
    RETURNS(&verdict, VIP_SUCCESS, VipConnectAccept(await_request(nic, &remote, SOON_MS), server));
    RETURNS(&verdict, VIP_SUCCESS, request_end(&requesting));
    vi_close(client);
    vi_close(server);
    conclude(&verdict);
}

int main(void)
{
    const char *device = test_start();
    struct nic  nic;

    nic_open(&nic, device);
    unknown(&nic);
    own(&nic);
    twice(&nic);
    within(&nic);
    beyond(&nic);
    inverse(&nic);
    outlives(&nic);
    nic_close(&nic);
    return test_failed;
}
