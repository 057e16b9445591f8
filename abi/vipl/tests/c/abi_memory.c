/* abi_memory - statements 30 to 32, 35, 37, 39 and 40: protection tags and registration. */
#include "test.h"

enum { REGIONS = 1000 };

static VIP_UINT8 bytes[8192];

static VIP_MEM_ATTRIBUTES with_tag(VIP_PROTECTION_HANDLE ptag)
{
    VIP_MEM_ATTRIBUTES attributes = {NULL, VIP_FALSE, VIP_FALSE};

    attributes.Ptag = ptag;
    return attributes;
}

static VIP_PROTECTION_HANDLE destroyed_tag(struct nic *nic)
{
    VIP_PROTECTION_HANDLE ptag;

    MUST(VipCreatePtag(nic->handle, &ptag));
    MUST(VipDestroyPtag(nic->handle, ptag));
    return ptag;
}

static void unknown_tags(struct nic *nic, struct nic *other)
{
    struct verdict        verdict = {30, 0, 0, "destroying an unknown tag fails"};
    VIP_PROTECTION_HANDLE tags[5];
    size_t                i;

    tags[0] = NULL;
    tags[1] = &verdict;
    tags[2] = destroyed_tag(nic);
    tags[3] = other->ptag;
    tags[4] = nic->handle;
    for (i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        VIP_RETURN result = VipDestroyPtag(nic->handle, tags[i]);

        check(&verdict, result == VIP_INVALID_PTAG || result == VIP_INVALID_PARAMETER, "case %zu: %s", i, result_name(result));
    }
    conclude(&verdict);
}

static void small(struct nic *nic)
{
    struct verdict     one = {31, 0, 0, "one byte at an odd address"};
    struct verdict     none = {32, 0, 0, "length 0 is refused"};
    VIP_MEM_ATTRIBUTES attributes = with_tag(nic->ptag);
    VIP_MEM_HANDLE     handle = 0;

    RETURNS(&one, VIP_SUCCESS, VipRegisterMem(nic->handle, bytes + 1, 1, &attributes, &handle));
    RETURNS(&one, VIP_SUCCESS, VipDeregisterMem(nic->handle, bytes + 1, handle));
    conclude(&one);
    RETURNS(&none, VIP_INVALID_PARAMETER, VipRegisterMem(nic->handle, bytes, 0, &attributes, &handle));
    conclude(&none);
}

static void handles(struct nic *nic)
{
    struct verdict        verdict = {35, 0, 0, "memory handles are never 0, and each is new"};
    VIP_MEM_ATTRIBUTES    attributes = with_tag(nic->ptag);
    static VIP_MEM_HANDLE live[REGIONS];
    size_t                i;

    for (i = 0; i < REGIONS; i++) {
        MUST(VipRegisterMem(nic->handle, bytes, sizeof bytes, &attributes, &live[i]));
        check(&verdict, live[i] != 0, "registration %zu", i);
        check(&verdict, i == 0 || live[i] != live[i - 1], "registration %zu has the handle of the one before", i);
    }
    for (i = 0; i < REGIONS; i++)
        MUST(VipDeregisterMem(nic->handle, bytes, live[i]));
    for (i = 0; i < REGIONS; i++) {
        MUST(VipRegisterMem(nic->handle, bytes, 1, &attributes, &live[0]));
        check(&verdict, live[0] != 0, "registration %zu after as many deregistrations", i);
        MUST(VipDeregisterMem(nic->handle, bytes, live[0]));
    }
    conclude(&verdict);
}

static void bad_tags(struct nic *nic, struct nic *other)
{
    struct verdict        verdict = {37, 0, 0, "an invalid tag gives VIP_INVALID_PTAG"};
    VIP_MEM_ATTRIBUTES    good = with_tag(nic->ptag);
    VIP_MEM_HANDLE        region, handle;
    VIP_PROTECTION_HANDLE tags[4];
    size_t                i;

    tags[0] = &verdict;
    tags[1] = destroyed_tag(nic);
    tags[2] = other->ptag;
    tags[3] = nic->handle;
    MUST(VipRegisterMem(nic->handle, bytes, sizeof bytes, &good, &region));
    for (i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        VIP_MEM_ATTRIBUTES bad = with_tag(tags[i]), kept;

        RETURNS(&verdict, VIP_INVALID_PTAG, VipRegisterMem(nic->handle, bytes, 64, &bad, &handle));
        RETURNS(&verdict, VIP_INVALID_PTAG, VipSetMemAttributes(nic->handle, bytes, region, &bad));
        MUST(VipQueryMem(nic->handle, bytes, region, &kept));
        check(&verdict, kept.Ptag == nic->ptag, "the refused tag of case %zu was set", i);
    }
    MUST(VipDeregisterMem(nic->handle, bytes, region));
    conclude(&verdict);
}

static void no_attributes(struct nic *nic, const char *device)
{
    struct verdict     verdict = {39, 0, 0, "NULL attributes: no RDMA rights; refused when strict"};
    VIP_MEM_ATTRIBUTES attributes = {bytes, VIP_TRUE, VIP_TRUE};
    VIP_MEM_HANDLE     handle;
    struct nic         strict;

    RETURNS(&verdict, VIP_SUCCESS, VipRegisterMem(nic->handle, bytes, sizeof bytes, NULL, &handle));
    RETURNS(&verdict, VIP_SUCCESS, VipQueryMem(nic->handle, bytes, handle, &attributes));
    check(&verdict, attributes.Ptag == NULL, "the tag is %p", attributes.Ptag);
    check(&verdict, !attributes.EnableRdmaWrite && !attributes.EnableRdmaRead, "RDMA is enabled");
    RETURNS(&verdict, VIP_SUCCESS, VipDeregisterMem(nic->handle, bytes, handle));

    nic_open(&strict, strict_name(device));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipRegisterMem(strict.handle, bytes, sizeof bytes, NULL, &handle));
    nic_close(&strict);

    setenv("SOVIA_VIPL_STRICT", "1", 1);
    nic_open(&strict, device);
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipRegisterMem(strict.handle, bytes, sizeof bytes, NULL, &handle));
    nic_close(&strict);
    unsetenv("SOVIA_VIPL_STRICT");
    conclude(&verdict);
}

static void deregistration(struct nic *nic, struct nic *other)
{
    struct verdict     verdict = {40, 0, 0, "deregistration needs the registered address and handle"};
    VIP_MEM_ATTRIBUTES attributes = with_tag(nic->ptag);
    VIP_MEM_HANDLE     handle;

    MUST(VipRegisterMem(nic->handle, bytes + 64, 128, &attributes, &handle));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipDeregisterMem(nic->handle, bytes + 65, handle));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipDeregisterMem(nic->handle, bytes, handle));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipDeregisterMem(nic->handle, NULL, handle));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipDeregisterMem(nic->handle, bytes + 64, 0));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipDeregisterMem(nic->handle, bytes + 64, handle ^ 1));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipDeregisterMem(nic->handle, bytes + 64, handle ^ 0x80000000U));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipDeregisterMem(nic->handle, bytes + 64, 0xFFFFFFFFU));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipDeregisterMem(other->handle, bytes + 64, handle));
    RETURNS(&verdict, VIP_SUCCESS, VipDeregisterMem(nic->handle, bytes + 64, handle));
    RETURNS(&verdict, VIP_INVALID_PARAMETER, VipDeregisterMem(nic->handle, bytes + 64, handle));
    conclude(&verdict);
}

int main(void)
{
    const char *device = test_start();
    struct nic  nic, other;

    nic_open(&nic, device);
    nic_open(&other, device);
    unknown_tags(&nic, &other);
    small(&nic);
    handles(&nic);
    bad_tags(&nic, &other);
    no_attributes(&nic, device);
    deregistration(&nic, &other);
    nic_close(&other);
    nic_close(&nic);
    return test_failed;
}
