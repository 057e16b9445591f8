/* abi_symbols - statement 14: the entry points have their names, C linkage, and no company. */
#include "test.h"

#include <dlfcn.h>

typedef void (*entry)(void);

#define ENTRY(name) {#name, (entry)(name)}

static const struct {
    const char *name;
    entry       linked;
} entries[] = {
    ENTRY(VipOpenNic),           ENTRY(VipCloseNic),         ENTRY(VipQueryNic),        ENTRY(VipCreatePtag),
    ENTRY(VipDestroyPtag),       ENTRY(VipRegisterMem),      ENTRY(VipDeregisterMem),   ENTRY(VipSetMemAttributes),
    ENTRY(VipQueryMem),          ENTRY(VipCreateVi),         ENTRY(VipDestroyVi),       ENTRY(VipQueryVi),
    ENTRY(VipSetViAttributes),   ENTRY(VipConnectWait),      ENTRY(VipConnectAccept),   ENTRY(VipConnectReject),
    ENTRY(VipConnectRequest),    ENTRY(VipDisconnect),       ENTRY(VipConnectPeerRequest), ENTRY(VipConnectPeerDone),
    ENTRY(VipConnectPeerWait),   ENTRY(VipPostSend),         ENTRY(VipPostRecv),        ENTRY(VipSendDone),
    ENTRY(VipRecvDone),          ENTRY(VipSendWait),         ENTRY(VipRecvWait),        ENTRY(VipSendNotify),
    ENTRY(VipRecvNotify),        ENTRY(VipCreateCQ),         ENTRY(VipDestroyCQ),       ENTRY(VipResizeCQ),
    ENTRY(VipCQDone),            ENTRY(VipCQWait),           ENTRY(VipCQNotify),        ENTRY(VipErrorCallback),
    ENTRY(VipQuerySystemManagementInfo), ENTRY(VipNSInit),   ENTRY(VipNSGetHostByName), ENTRY(VipNSGetHostByAddr),
    ENTRY(VipNSShutdown),        ENTRY(VipGetUserData),      ENTRY(VipSetUserData),
};

/* MPICH-NT looks these up and takes their presence as a promise; rust_eh_personality stands for everything internal. */
static const char *const absent[] = {"VipAddTagCQ", "VipRemoveTagCQ", "VipPostDeferredSends", "rust_eh_personality"};

int main(int argc, char **argv)
{
    struct verdict verdict = {14, 0, 0, "all entry points resolve with dlsym"};
    const char    *library = argc > 1 ? argv[1] : "libvipl.so";
    void          *handle;
    size_t         i;

    test_start();
    handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        ok(0, 14, "%s", dlerror());
        return 1;
    }
    check(&verdict, sizeof entries / sizeof entries[0] == 41 + 2, "this test knows %zu", sizeof entries / sizeof entries[0]);
    for (i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *found = dlsym(handle, entries[i].name);
        void *versioned = dlvsym(handle, entries[i].name, "VIPL_1.0");
        entry linked;

        memcpy(&linked, &found, sizeof linked);
        check(&verdict, found != NULL, "%s is not there", entries[i].name);
        check(&verdict, found == versioned, "%s has not the version VIPL_1.0", entries[i].name);
        check(&verdict, argc > 1 || linked == entries[i].linked, "%s is another function when linked", entries[i].name);
    }
    for (i = 0; i < sizeof absent / sizeof absent[0]; i++)
        check(&verdict, dlsym(handle, absent[i]) == NULL, "%s is exported", absent[i]);
    conclude(&verdict);
    return test_failed;
}
