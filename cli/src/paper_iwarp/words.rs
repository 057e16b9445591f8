//! What the paper (Balaji, Jin, Vaidyanathan, Panda: "Supporting iWARP Compatibility and Features for Regular Network Adapters", 2005) found, and what is to be said under ours.

/// Figure 5: what the interface costs a connection that does not use it.
pub(super) const PLAIN: &str = "“very minimal”";
/// Figure 6(a): above TCP, at user level and in the kernel.
pub(super) const LATENCY: &str = "+100 µs at user level, +5 µs in the kernel";
/// Figure 6(b): 550 Mbit/s on a gigabit wire.
pub(super) const BANDWIDTH: &str = "about 0.6 ×, at user level and in the kernel";

pub(super) const BEFORE: &str = "In brackets: TCP's time by ours, so that more than 1 is better than TCP. TCP polls where a VI does, and blocks where the interface waits as programs do.";

pub(super) const BARE: &str = "Bare calls gather and scatter the pieces of records by TCP's own vectored calls, and pass the checksum over the payload at each end. They verify nothing and know no messages: what they reach bounds every iWARP at user level with these calls.";

pub(super) const TESTBED: &str =
    "The paper's testbed: two quad Pentium III of 700 MHz, Gigabit Ethernet, Linux 2.4.18.";

pub(super) const SIW: &str = "Linux siw is measured by perftest (ib_send_lat -R, ib_send_bw -R), whose programs poll as a VI does; its streams do not wait for an answer after each window. Where ours is compared with it, times below 1 × and streams above 1 × are better than siw.";

pub(super) const UNDER_PLAIN: [&str; 2] = [
    "The paper found that asking on each call whether a socket is in iWARP mode adds very little to the latency of one that is not. Today the question is a load from a table before the \
kernel's own call: a program that sleeps in its calls does not see it in the noise of its wake-ups, and one that polls, whose messages take an eighth of that, pays some 0.1 µs for a message.",
    "The paper found no difference in bandwidth. Today the same holds from 16 kB up, and below it a call is so short that the look before it shows: up to 4 % where both ends poll.",
];

pub(super) const UNDER_EXTENDED: [&str; 2] = [
    "The paper found its user-level iWARP 100 µs above TCP, for threads that pass descriptors through sockets and wake each other, and its kernel's 5 µs. Today whoever calls moves the \
octets, so a VI costs less than a microsecond more than TCP that polls as it does; an extended socket polls some microseconds before it sleeps, and so stays below TCP's calls, which sleep at once.",
    "The paper found a peak of 550 Mbit/s, below TCP for small messages because Nagle's algorithm was off, and for large ones because of the checksums. Today TCP goes without Nagle, too, and \
payload is copied no more often than by TCP: what remains is a record's own work below 4 kB, and above it a pass of the checksum at each end (about 1 µs for 64 kB) beside copies that take 6 to 10; \
markers cost a copy at each end, and so do the plain calls of extended sockets.",
];
