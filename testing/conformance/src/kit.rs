//! What the statements are written with: open NICs, connected pairs, waiting without sleeping.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use via::provider::{ConnOps, NicOps, OpenOptions, ViOps};
use via::{
    AsyncError, Completion, DescriptorAt, Done, Error, ErrorCode, Fault, MemHandle, NetAddress,
    Nic, Ptag, Queue, Reliability, Vi, ViAttributes, ViConfig, ViState,
};

use crate::lab::{Host, Lab};

pub(crate) use log::Log;
pub(crate) use must::Must;
pub(crate) use sleepers::three_sleepers;

mod log;
mod must;
mod sleepers;

/// A NIC that is open, strict, with a tag and somebody who notes its asynchronous errors.
pub(crate) struct Site<'l> {
    pub(crate) lab: &'l dyn Lab,
    pub(crate) tag: Ptag,
    pub(crate) nic: Nic,
    /// Its asynchronous errors.
    pub(crate) errors: Log<AsyncError>,
}

impl<'l> Site<'l> {
    #[track_caller]
    pub(crate) fn open(lab: &'l dyn Lab, host: Host) -> Self {
        let nic = Nic::open(lab.driver(host)).must();
        let errors = Log::default();
        let notes = errors.clone();
        nic.on_error(move |error| notes.note(*error)).must();
        Self {
            lab,
            tag: nic.create_ptag().must(),
            nic,
            errors,
        }
    }

    /// Both NICs of a conversation.
    #[track_caller]
    pub(crate) fn two(lab: &'l dyn Lab) -> (Self, Self) {
        (Self::open(lab, Host::A), Self::open(lab, Host::B))
    }

    pub(crate) fn ops(&self) -> &dyn NicOps {
        &**self.nic.ops()
    }

    pub(crate) fn config(&self, level: Reliability) -> ViConfig<'_> {
        let most = self.nic.attributes().max_transfer_size;
        ViConfig::new(&self.tag)
            .reliability(level)
            .max_transfer_size(most.min(TRANSFER))
    }

    #[track_caller]
    pub(crate) fn vi(&self, level: Reliability) -> Vi {
        self.nic.create_vi(&self.config(level)).must()
    }

    /// An address of this NIC that nobody else uses.
    #[track_caller]
    pub(crate) fn fresh_address(&self) -> NetAddress {
        self.nic.address(fresh_name().as_bytes()).must()
    }

    /// Whether the NIC reads remote memory at `level`.
    pub(crate) fn reads_at(&self, level: Reliability) -> bool {
        self.nic.attributes().rdma_read.contains(level)
    }

    /// Waits until all errors raised so far have been noted, by raising one more.
    #[track_caller]
    pub(crate) fn settle(&self) {
        let spare = self.vi(Reliability::Unreliable);
        let misaligned = DescriptorAt {
            addr: 1,
            handle: MemHandle(0),
        };
        spare.ops().post_at(Queue::Recv, misaligned).must();
        self.errors
            .wait_for(self.lab, ErrorCode::PostDesc, spare.id());
    }
}

/// Two connected VIs. By custom A asks for the connection and sends; B waits and receives.
pub(crate) struct Pair<'l> {
    pub(crate) va: Vi,
    pub(crate) vb: Vi,
    pub(crate) a: Site<'l>,
    pub(crate) b: Site<'l>,
}

impl<'l> Pair<'l> {
    #[track_caller]
    pub(crate) fn new(lab: &'l dyn Lab, level: Reliability) -> Self {
        Self::with(lab, level, |config| config)
    }

    /// Both accept all RDMA that the NIC has.
    #[track_caller]
    pub(crate) fn for_rdma(lab: &'l dyn Lab, level: Reliability) -> Self {
        let reads = reads_at(lab, level);
        Self::with(lab, level, |config| {
            let config = config.accept_rdma_write();
            if reads {
                config.accept_rdma_read()
            } else {
                config
            }
        })
    }

    #[track_caller]
    pub(crate) fn with(
        lab: &'l dyn Lab,
        level: Reliability,
        plan: impl for<'a> Fn(ViConfig<'a>) -> ViConfig<'a>,
    ) -> Self {
        let (a, b) = Site::two(lab);
        let va = a.nic.create_vi(&plan(a.config(level))).must();
        let vb = b.nic.create_vi(&plan(b.config(level))).must();
        connect((&a, &va), (&b, &vb));
        Self { va, vb, a, b }
    }

    pub(crate) fn lab(&self) -> &'l dyn Lab {
        self.a.lab
    }

    /// Both ends reach the error state.
    #[track_caller]
    pub(crate) fn assert_broken(&self) {
        await_state(self.lab(), &self.va, ViState::Error);
        await_state(self.lab(), &self.vb, ViState::Error);
    }

    #[track_caller]
    pub(crate) fn assert_connected(&self) {
        assert_eq!(self.va.state(), Ok(ViState::Connected));
        assert_eq!(self.vb.state(), Ok(ViState::Connected));
    }

    /// What a failure at `level` leads to: UD goes on, the others break.
    #[track_caller]
    pub(crate) fn assert_survives_only(&self, level: Reliability) {
        if level.is_reliable() {
            self.assert_broken();
        } else {
            self.assert_connected();
        }
    }

    /// Sends an empty message from A to B. When it has arrived at a reliable level, so has all that was sent before.
    #[track_caller]
    pub(crate) fn exchange_empty(&self) {
        self.vb.post_recv(&via::Descriptor::recv(), 0).must();
        self.va.post_send(&via::Descriptor::send(), 0).must();
        received(&self.vb).ok().must();
        sent(&self.va).ok().must();
    }
}

/// Connects `client` to `server`, by request and accept.
#[track_caller]
pub(crate) fn connect(client: (&Site<'_>, &Vi), server: (&Site<'_>, &Vi)) {
    let to = server.0.fresh_address();
    let from = client.0.fresh_address();
    let (asked, ()) = beside(
        client.0.lab,
        || request(client.0.lab, &**client.1.ops(), &from, &to, SOON),
        || {
            incoming(server.0.ops(), &to)
                .accept(&**server.1.ops())
                .must()
        },
    );
    asked.must();
}

/// As [`connect`], for a NIC that is not strict.
#[track_caller]
pub(crate) fn connect_raw(lab: &dyn Lab, nic: &dyn NicOps, client: &dyn ViOps, server: &dyn ViOps) {
    let to = NetAddress::new(nic.attributes().local_address, fresh_name().as_bytes()).must();
    let (asked, ()) = beside(
        lab,
        || request(lab, client, &to, &to, SOON),
        || incoming(nic, &to).accept(server).must(),
    );
    asked.must();
}

/// Opens the NIC as libvipl does for old programs.
#[track_caller]
pub(crate) fn open_compat(lab: &dyn Lab) -> Arc<dyn NicOps> {
    lab.driver(Host::A)
        .open(OpenOptions {
            strict: false,
            ..OpenOptions::default()
        })
        .must()
}

#[track_caller]
pub(crate) fn incoming(nic: &dyn NicOps, at: &NetAddress) -> Box<dyn ConnOps> {
    nic.connect_wait(at, SOON).must()
}

/// Asks for a connection, again while nobody waits there yet.
pub(crate) fn request(
    lab: &dyn Lab,
    vi: &dyn ViOps,
    from: &NetAddress,
    to: &NetAddress,
    timeout: via::provider::Timeout,
) -> Result<ViAttributes, Error> {
    let began = Instant::now();
    loop {
        match vi.connect_request(from, to, timeout) {
            Err(Error::NoMatch) if began.elapsed() < PATIENCE => lab.pass(),
            outcome => return outcome,
        }
    }
}

/// Runs `other` on a thread of its own, beside `this`.
pub(crate) fn beside<T: Send, U>(
    lab: &dyn Lab,
    other: impl FnOnce() -> T + Send,
    this: impl FnOnce() -> U,
) -> (T, U) {
    let part = lab.take_part();
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            let _part = part;
            other()
        });
        let this = this();
        while !other.is_finished() {
            lab.pass();
        }
        let other = other
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (other, this)
    })
}

/// Runs all `jobs`, each on a thread of its own.
pub(crate) fn crowd<'a>(
    lab: &dyn Lab,
    jobs: impl IntoIterator<Item = Box<dyn FnOnce() + Send + 'a>>,
) {
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for job in jobs {
            let part = lab.take_part();
            threads.push(scope.spawn(move || {
                let _part = part;
                job();
            }));
        }
        while !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
            lab.pass();
        }
    });
}

/// Waits until `holds`, without sleeping.
#[track_caller]
pub(crate) fn until(lab: &dyn Lab, what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        lab.pass();
    }
}

#[track_caller]
pub(crate) fn await_state(lab: &dyn Lab, vi: &Vi, state: ViState) {
    until(lab, &format!("the state {state}"), || {
        vi.state().must() == state
    });
}

/// The next completion of the send queue, whatever its status.
#[track_caller]
pub(crate) fn sent(vi: &Vi) -> Completion {
    next(vi, Queue::Send)
}

/// The next completion of the receive queue, whatever its status.
#[track_caller]
pub(crate) fn received(vi: &Vi) -> Completion {
    next(vi, Queue::Recv)
}

#[track_caller]
pub(crate) fn next(vi: &Vi, queue: Queue) -> Completion {
    match vi.ops().wait(queue, SOON).must() {
        Done::Completed(completion) => completion,
        other => panic!("{other:?} after waiting on the {queue:?} queue"),
    }
}

/// As [`next`], by polling: for queues that report to a completion queue.
#[track_caller]
pub(crate) fn poll(lab: &dyn Lab, vi: &Vi, queue: Queue) -> Completion {
    let mut found = None;
    until(lab, "a completion", || {
        found = vi.ops().done(queue).must().completion();
        found.is_some()
    });
    found.must()
}

/// The descriptor named `token` failed like this.
#[track_caller]
pub(crate) fn assert_fault(completion: Completion, token: u64, fault: Fault) {
    assert_eq!(
        (completion.token, completion.status.fault()),
        (token, Some(fault))
    );
}

/// Runs `body` at every level that the NIC offers, weakest first.
pub(crate) fn each_level(lab: &dyn Lab, mut body: impl FnMut(Reliability)) {
    let offered = Nic::open(lab.driver(Host::A))
        .must()
        .attributes()
        .reliability;
    for level in Reliability::ALL {
        if offered.contains(level) {
            println!("at {level}");
            body(level);
        }
    }
}

/// As [`each_level`], without UD.
pub(crate) fn each_reliable_level(lab: &dyn Lab, mut body: impl FnMut(Reliability)) {
    each_level(lab, |level| {
        if level.is_reliable() {
            body(level);
        }
    });
}

/// Runs `body` at every level at which the NIC reads remote memory.
pub(crate) fn each_read_level(lab: &dyn Lab, mut body: impl FnMut(Reliability)) {
    each_level(lab, |level| {
        if reads_at(lab, level) {
            body(level);
        }
    });
}

pub(crate) fn reads_at(lab: &dyn Lab, level: Reliability) -> bool {
    Nic::open(lab.driver(Host::A))
        .must()
        .attributes()
        .rdma_read
        .contains(level)
}

/// Whether `told` is what the other side may know of `vi`: all but its tag.
#[track_caller]
pub(crate) fn assert_told(told: ViAttributes, vi: &Vi) {
    let known = ViAttributes {
        ptag: told.ptag,
        ..vi.ops().attributes().must()
    };
    assert_eq!(told, known);
}

/// How long `call` took, in the provider's time, and what it returned.
pub(crate) fn timed<T>(lab: &dyn Lab, call: impl FnOnce() -> T) -> (Duration, T) {
    let began = lab.now();
    let outcome = call();
    (lab.now().saturating_duration_since(began), outcome)
}

/// "After about the given time": never before it, and not so much later that it must be something else.
#[track_caller]
pub(crate) fn assert_about(took: Duration, given: Duration) {
    assert!(took >= given, "returned after {took:?}, before {given:?}");
    assert!(
        took < given + SLACK,
        "returned after {took:?}, given {given:?}"
    );
}

#[track_caller]
pub(crate) fn assert_prompt(took: Duration) {
    assert!(took < SLACK, "took {took:?}");
}

#[track_caller]
pub(crate) fn refused<T>(outcome: Result<T, Error>, with: Error) {
    assert_eq!(outcome.err(), Some(with));
}

/// A discriminator that no other test, thread or process uses.
pub(crate) fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}.{count:x}", std::process::id())
}

/// For calls that should succeed: if it takes this long they hang.
pub(crate) const SOON: via::provider::Timeout = Some(PATIENCE);
/// For calls that should time out.
pub(crate) const SHORT: Duration = Duration::from_millis(50);
/// Most bytes of one transfer, unless a statement is about that.
pub(crate) const TRANSFER: u32 = 65536;

const PATIENCE: Duration = Duration::from_secs(20);
const SLACK: Duration = Duration::from_secs(5);
