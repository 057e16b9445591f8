//! The programs that start another.

use super::Starter;
use super::option::NO_SHORT;

pub(super) const STARTERS: [Starter; 13] = [
    // Their words are the priority, the processors, how long.
    Starter::plain(
        "chrt",
        &[
            (b'p', "pid"),
            (b'T', "sched-runtime"),
            (b'P', "sched-period"),
            (b'D', "sched-deadline"),
        ],
        1,
    ),
    Starter::plain("taskset", &[(b'p', "pid")], 1),
    Starter::plain("timeout", &[(b'k', "kill-after"), (b's', "signal")], 1),
    Starter {
        is_env: true,
        ..Starter::plain("env", &[(b'u', UNSET), (b'C', CHDIR), (b'a', "argv0")], 0)
    },
    Starter::plain(
        "ionice",
        &[
            (b'c', "class"),
            (b'n', "classdata"),
            (b'p', "pid"),
            (b'P', "pgid"),
            (b'u', "uid"),
        ],
        0,
    ),
    // The C library's linker, which has no short ones.
    Starter::plain(LINKERS[0], LINKER_OPTIONS, 0),
    Starter::plain(LINKERS[1], LINKER_OPTIONS, 0),
    Starter::plain("nice", &[(b'n', "adjustment")], 0),
    Starter::plain("nohup", &[], 0),
    Starter::plain(
        "numactl",
        &[
            (b'i', "interleave"),
            (b'p', "preferred"),
            (b'P', "preferred-many"),
            (b'w', "weighted-interleave"),
            (b'm', "membind"),
            (b'N', "cpunodebind"),
            (b'C', "physcpubind"),
        ],
        0,
    ),
    Starter::plain("setsid", &[], 0),
    Starter::plain(
        "stdbuf",
        &[(b'i', "input"), (b'o', "output"), (b'e', "error")],
        0,
    ),
    Starter::plain("time", &[(b'f', "format"), (b'o', "output")], 0),
];

pub(super) const UNSET: &str = "unset";
pub(super) const CHDIR: &str = "chdir";
/// Of x86-64 and of 64-bit ARM.
pub(super) const LINKERS: [&str; 2] = ["ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"];
pub(super) const LIBRARY_PATH: &str = "library-path";
const LINKER_OPTIONS: &[(u8, &str)] = &[
    (NO_SHORT, LIBRARY_PATH),
    (NO_SHORT, "inhibit-rpath"),
    (NO_SHORT, "audit"),
    (NO_SHORT, "preload"),
    (NO_SHORT, "argv0"),
    (NO_SHORT, "glibc-hwcaps-prepend"),
    (NO_SHORT, "glibc-hwcaps-mask"),
];
