/* abi_nic - statements 17 to 22 and 25: opening, querying and closing a NIC. */
#include "test.h"

enum { HANDLES_MAX = 100000 };

static void known_and_unknown(const char *device)
{
    struct verdict verdict = {17, 0, 0, "a known device opens, an unknown one is refused"};
    VIP_NIC_HANDLE nic;

    RETURNS(&verdict, VIP_SUCCESS, VipOpenNic(device, &nic));
    RETURNS(&verdict, VIP_SUCCESS, VipCloseNic(nic));
    RETURNS(&verdict, VIP_SUCCESS, VipOpenNic(strict_name(device), &nic));
    RETURNS(&verdict, VIP_SUCCESS, VipCloseNic(nic));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipOpenNic("/dev/no_such_nic", &nic));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipOpenNic("", &nic));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipOpenNic("shm,no_such_word", &nic));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipOpenNic("\xff\xfe", &nic));
    conclude(&verdict);
}

static void twice(const char *device)
{
    struct verdict        verdict = {18, 0, 0, "opened twice, closed once"};
    VIP_NIC_HANDLE        one, two;
    VIP_NIC_ATTRIBUTES    attributes;
    VIP_PROTECTION_HANDLE ptag;

    MUST(VipOpenNic(device, &one));
    MUST(VipOpenNic(device, &two));
    check(&verdict, one != two && one && two, "the handles are %p and %p", one, two);
    RETURNS(&verdict, VIP_SUCCESS, VipCloseNic(one));
    RETURNS(&verdict, VIP_SUCCESS, VipQueryNic(two, &attributes));
    RETURNS(&verdict, VIP_SUCCESS, VipCreatePtag(two, &ptag));
    RETURNS(&verdict, VIP_SUCCESS, VipCloseNic(two));
    conclude(&verdict);
}

static void nulls(const char *device)
{
    struct verdict verdict = {19, 0, 0, "NULL name, NULL out pointer"};
    VIP_NIC_HANDLE nic;

    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipOpenNic(NULL, &nic));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipOpenNic(device, NULL));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipOpenNic(NULL, NULL));
    conclude(&verdict);
}

static void exhaustion(const char *device)
{
    struct verdict         verdict = {20, 0, 0, "handles run out and come back"};
    static VIP_NIC_HANDLE  handles[HANDLES_MAX];
    VIP_RETURN             result = VIP_SUCCESS;
    size_t                 count = 0;

    while (count < HANDLES_MAX && (result = VipOpenNic(device, &handles[count])) == VIP_SUCCESS)
        count++;
    check(&verdict, count > 1, "only %zu handles", count);
    check(&verdict, result == VIP_ERROR_RESOURCE, "after %zu handles: %s", count, result_name(result));
    if (count > 0) {
        RETURNS(&verdict, VIP_SUCCESS, VipCloseNic(handles[0]));
        RETURNS(&verdict, VIP_SUCCESS, VipOpenNic(device, &handles[0]));
    }
    while (count > 0)
        RETURNS(&verdict, VIP_SUCCESS, VipCloseNic(handles[--count]));
    conclude(&verdict);
}

static void closed(const char *device)
{
    struct verdict     verdict = {21, 0, 0, "a closed handle is refused, also when its place is taken again"};
    VIP_NIC_HANDLE     one, two;
    VIP_NIC_ATTRIBUTES attributes;

    MUST(VipOpenNic(device, &one));
    RETURNS(&verdict, VIP_SUCCESS, VipCloseNic(one));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipCloseNic(one));
    MUST(VipOpenNic(device, &two));
    check(&verdict, one != two, "the handle %p again", one);
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipQueryNic(one, &attributes));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipCloseNic(one));
    RETURNS(&verdict, VIP_SUCCESS, VipCloseNic(two));
    conclude(&verdict);
}

#define SAME(member) check(&verdict, a.member == b.member, #member " differs")

static void queried(const char *device)
{
    struct verdict     verdict = {22, 0, 0, "two queries agree, and the terminating NUL is there"};
    VIP_NIC_HANDLE     nic;
    VIP_NIC_ATTRIBUTES a, b;

    MUST(VipOpenNic(device, &nic));
    memset(&a, 0xa5, sizeof a);
    memset(&b, 0x5a, sizeof b);
    RETURNS(&verdict, VIP_SUCCESS, VipQueryNic(nic, &a));
    RETURNS(&verdict, VIP_SUCCESS, VipQueryNic(nic, &b));
    check(&verdict, memchr(a.Name, 0, sizeof a.Name) != NULL && strncmp(a.Name, b.Name, sizeof a.Name) == 0, "Name differs");
    SAME(HardwareVersion);
    SAME(ProviderVersion);
    SAME(NicAddressLen);
    SAME(LocalNicAddress);
    SAME(ThreadSafe);
    SAME(MaxDiscriminatorLen);
    SAME(MaxRegisterBytes);
    SAME(MaxRegisterRegions);
    SAME(MaxRegisterBlockBytes);
    SAME(MaxVI);
    SAME(MaxDescriptorsPerQueue);
    SAME(MaxSegmentsPerDesc);
    SAME(MaxCQ);
    SAME(MaxCQEntries);
    SAME(MaxTransferSize);
    SAME(NativeMTU);
    SAME(MaxPtags);
    SAME(ReliabilityLevelSupport);
    SAME(RDMAReadSupport);
    check(&verdict, 4 + a.NicAddressLen + a.MaxDiscriminatorLen <= 40, "an address does not fit 40 bytes");
    MUST(VipCloseNic(nic));
    conclude(&verdict);
}

static void address(const char *device)
{
    struct verdict     verdict = {25, 0, 0, "the NIC's address, by two handles"};
    VIP_NIC_HANDLE     one, two;
    VIP_NIC_ATTRIBUTES a, b;
    VIP_UINT8          kept[64];

    MUST(VipOpenNic(device, &one));
    MUST(VipOpenNic(device, &two));
    MUST(VipQueryNic(one, &a));
    MUST(VipQueryNic(two, &b));
    check(&verdict, a.NicAddressLen > 0 && a.NicAddressLen == b.NicAddressLen, "lengths %u and %u", a.NicAddressLen, b.NicAddressLen);
    check(&verdict, memcmp(a.LocalNicAddress, b.LocalNicAddress, a.NicAddressLen) == 0, "the bytes differ");
    NEED(a.NicAddressLen <= sizeof kept);
    memcpy(kept, a.LocalNicAddress, a.NicAddressLen);
    MUST(VipCloseNic(one));
    check(&verdict, memcmp(kept, b.LocalNicAddress, a.NicAddressLen) == 0, "the bytes went with the other handle");
    MUST(VipCloseNic(two));
    conclude(&verdict);
}

/* The own address first, and nothing behind it or behind the array. */
static void discovered(const char *device)
{
    enum { PLACES = 4, UNTOUCHED = 0xa5 };
    struct verdict         verdict = {25, 0, 0, "autodiscovery finds the NIC's own address"};
    struct nic             nic;
    union address          found[PLACES], own, before;
    VIP_NET_ADDRESS       *places[PLACES];
    VIP_AUTODISCOVERY_LIST list = {0, NULL, 0};
    size_t                 i;

#define DISCOVER() VipQuerySystemManagementInfo(nic.handle, VIP_SMI_AUTODISCOVERY, &list)
    nic_open(&nic, device);
    address_of(&nic, &own, NULL, "");
    memset(&before, UNTOUCHED, sizeof before);
    for (i = 0; i < PLACES; i++) {
        found[i] = before;
        places[i] = &found[i].net;
    }
    /* No room: how much there should be. */
    RETURNS(&verdict, VIP_ERROR_RESOURCE, DISCOVER());
    check(&verdict, list.NumAdAddrs == 1, "%lu hosts at no distance", list.NumAdAddrs);
    /* No array, no address in it. */
    RETURNS(&verdict, VIP_INVALID_PARAMETER, DISCOVER());
    list.ADAddrArray = places;
    places[0] = NULL;
    RETURNS(&verdict, VIP_INVALID_PARAMETER, DISCOVER());
    places[0] = &found[0].net;
    check(&verdict, memcmp(&found[0], &before, sizeof before) == 0, "a call that failed wrote an address");

    list.NumberOfHops = 1;
    list.NumAdAddrs = PLACES;
    RETURNS(&verdict, VIP_SUCCESS, DISCOVER());
    check(&verdict, list.NumAdAddrs >= 1 && list.NumAdAddrs <= PLACES, "%lu hosts", list.NumAdAddrs);
    i = offsetof(VIP_NET_ADDRESS, HostAddress) + (size_t)nic.attributes.NicAddressLen;
    check(&verdict, memcmp(&found[0], &own, i) == 0, "another address is first");
    check(&verdict, memcmp(found[0].bytes + i, before.bytes, sizeof before.bytes - i) == 0, "more than an address was written");
    for (i = list.NumAdAddrs; i < PLACES; i++)
        check(&verdict, memcmp(&found[i], &before, sizeof before) == 0, "place %zu was written", i);
    check(&verdict, list.NumberOfHops == 1 && list.ADAddrArray == places, "the question was changed");
    nic_close(&nic);
    conclude(&verdict);
}

int main(void)
{
    const char *device = test_start();

    known_and_unknown(device);
    twice(device);
    nulls(device);
    exhaustion(device);
    closed(device);
    queried(device);
    address(device);
    discovered(device);
    return test_failed;
}
