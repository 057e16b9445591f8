//! The programs that start another.

use super::Starter;

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
        ..Starter::plain(
            "env",
            &[(b'u', "unset"), (b'C', "chdir"), (b'a', "argv0")],
            0,
        )
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

/// Of x86-64 and of 64-bit ARM.
pub(super) const LINKERS: [&str; 2] = ["ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"];
const LINKER_OPTIONS: &[(u8, &str)] = &[
    (0, "library-path"),
    (0, "inhibit-rpath"),
    (0, "audit"),
    (0, "preload"),
    (0, "argv0"),
    (0, "glibc-hwcaps-prepend"),
    (0, "glibc-hwcaps-mask"),
];
