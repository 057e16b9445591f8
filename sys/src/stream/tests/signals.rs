//! Signal handlers that use the stream which their own thread is using.

use std::ptr;
use std::sync::OnceLock;
use std::thread;

use super::*;
use crate::sync::{AtomicBool, AtomicU64};
use crate::turn::Turns;

/// Both ends of a stream are used by one thread and its handler each, in both directions, while others take and give at the far end.
#[test]
fn a_handler_sends_and_receives_in_between() {
    let (near, far) = pair();
    let near = NEAR.get_or_init(|| {
        let turns = Turns::new();
        turns.replace(Some(near)).expect("nobody has a turn");
        turns
    });
    thread::scope(|scope| {
        let check = scope.spawn(|| check_frames(&far));
        scope.spawn(|| feed(&far));
        let timers = Timers::start();
        let mut random = Random(11);
        let mut into = vec![0; 1 << 16];
        let enough =
            || HANDLED.load(Ordering::Relaxed) >= HANDLERS && SENT.load(Ordering::Relaxed) >= 3000;
        // A check that failed takes no more, and room would never come.
        while !enough() && !check.is_finished() {
            let turn = near.take(0).expect("a stream");
            send_frame(
                &turn,
                turn.nested(),
                MAIN,
                random.len().min(60_000) as usize,
            );
            drop(turn);
            receive(near, &mut into, &mut random);
        }
        drop(timers);
        DONE.store(true, Ordering::Release);
        // The rest, so that nobody waits for room.
        while RECEIVED.load(Ordering::Relaxed) < FED.load(Ordering::Acquire)
            || !FED_ALL.load(Ordering::Acquire)
        {
            receive(near, &mut into, &mut random);
        }
        let turn = near.take(0).expect("a stream");
        turn.tx().finish(FIN);
    });
    assert_eq!(
        RECEIVED_SUM.load(Ordering::Relaxed),
        FED_SUM.load(Ordering::Relaxed)
    );
    assert_eq!(
        RECEIVED.load(Ordering::Relaxed),
        FED.load(Ordering::Relaxed)
    );
    let between = BETWEEN.load(Ordering::Relaxed);
    println!(
        "{} handlers, {between} in the middle of a turn",
        HANDLED.load(Ordering::Relaxed)
    );
    assert!(between > 50, "the test tests nothing: {between}");
}

extern "C" fn handler(signal: libc::c_int) {
    let Some(near) = NEAR.get() else { return };
    let who = if signal == SIGNALS[0] { 1 } else { 2 };
    let n = HANDLED.load(Ordering::Relaxed);
    let mut random = Random(n);
    // Several of them, so that what depends on the number of writes shows.
    for _ in 0..random.below(3) {
        let turn = near.take(0).expect("a stream");
        BETWEEN.fetch_add(u64::from(turn.nested()), Ordering::Relaxed);
        let len = if random.below(8) == 0 { 30_000 } else { 200 };
        send_frame(&turn, turn.nested(), who, random.below(len) as usize);
    }
    if random.below(2) == 0 {
        receive(near, &mut [0; 3000], &mut random);
    }
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// Sends one frame, if there is room for all of it: who sends, how long, its number, and bytes that follow from these.
fn send_frame(stream: &Stream, nested: bool, who: usize, len: usize) {
    // A handler may leave less room than there is; it must not begin a frame that it can not end.
    if stream.tx().room(RING).expect("sound") < 4 * 65_536 {
        return;
    }
    // No handler comes into itself, so nobody else of this number sends meanwhile.
    let number = NUMBERS[who].fetch_add(1, Ordering::Relaxed);
    let mut head = [0; 16];
    head[0] = who as u8 + 1;
    head[4..8].copy_from_slice(&u32::try_from(len).expect("short").to_ne_bytes());
    head[8..].copy_from_slice(&number.to_ne_bytes());
    let mut frame = [0; 16 + (1 << 16)];
    frame[..16].copy_from_slice(&head);
    for (at, byte) in (0..).zip(&mut frame[16..16 + len]) {
        *byte = byte_at(number * 7 + at + who as u64);
    }
    let frame = &frame[..16 + len];
    let (one, two) = frame[16..].split_at(len / 3);
    let pieces = [&frame[..16], one, two];
    let pieces = if number.is_multiple_of(2) {
        &pieces[..]
    } else {
        &[frame]
    };
    let (n, _) = write(stream.tx(), nested, pieces);
    SENT.fetch_add(1, Ordering::Relaxed);
    assert_eq!(n, len + 16, "there was room");
}

/// Each frame is whole. A frame that is longer than what is published at once may have others in it: those of handlers, whole as well.
fn check_frames(far: &Stream) {
    let mut reader = Reader {
        far,
        numbers: [0; 3],
    };
    while reader.frame(0) {}
    let sent = NUMBERS
        .each_ref()
        .map(|number| number.load(Ordering::Relaxed));
    assert_eq!(reader.numbers, sent);
}

struct Reader<'a> {
    far: &'a Stream,
    numbers: [u64; 3],
}

impl Reader<'_> {
    fn frame(&mut self, depth: u32) -> bool {
        let mut head = [0; 16];
        if !self.bytes(&mut head) {
            return false;
        }
        self.body(head, depth);
        true
    }

    fn body(&mut self, head: [u8; 16], depth: u32) {
        assert!((1..=3).contains(&head[0]), "{head:?}");
        assert!(depth < 1000);
        let who = usize::from(head[0]) - 1;
        let len = u32::from_ne_bytes(head[4..8].try_into().expect("four")) as usize;
        let number = u64::from_ne_bytes(head[8..].try_into().expect("eight"));
        assert_eq!(number, self.numbers[who]);
        self.numbers[who] += 1;
        // Where a handler came in, at the ends of pieces, is said by nobody: both are tried.
        let whole: Vec<u8> = (0..len as u64)
            .map(|at| byte_at(number * 7 + at + who as u64))
            .collect();
        for (got, right) in whole.iter().enumerate() {
            while self.handler_frame_next(who) {
                let mut inner = [0; 16];
                assert!(self.bytes(&mut inner));
                self.body(inner, depth + 1);
            }
            let mut byte = [0; 1];
            assert!(self.bytes(&mut byte));
            assert_eq!(
                byte[0], *right,
                "byte {got} of {len} of frame {number} of {who}"
            );
        }
    }

    /// Whether what comes next is the next frame of a handler that can come in between. Its head is published as a whole, and too long to be met by
    /// chance.
    fn handler_frame_next(&self, who: usize) -> bool {
        let mut head = [0; 16];
        let rx = self.far.rx();
        while rx.available() == Ok(0) {
            thread::yield_now();
        }
        let n = rx.peek(rx.head(), &mut head).expect("sound");
        let (sender, number) = (usize::from(head[0]), &head[8..]);
        n == 16
            && head[1..4] == [0; 3]
            && (who + 2..=3).contains(&sender)
            && number == self.numbers[sender - 1].to_ne_bytes()
    }

    fn bytes(&mut self, mut into: &mut [u8]) -> bool {
        let rx = self.far.rx();
        while !into.is_empty() {
            let ended = rx.finished() != 0;
            let head = rx.head();
            let n = rx.peek(head, into).expect("sound");
            assert!(rx.take(head, head + n as u64).0);
            if n == 0 {
                if ended {
                    return false;
                }
                thread::yield_now();
            }
            into = &mut into[n..];
        }
        true
    }
}

/// Sends bytes to the near end, whose sum tells whether each was received once, by whomever.
fn feed(far: &Stream) {
    let mut random = Random(5);
    while !DONE.load(Ordering::Acquire) {
        let data: Vec<u8> = (0..random.below(3000))
            .map(|_| random.next() as u8)
            .collect();
        let (n, _) = write(far.tx(), false, &[&data]);
        FED.fetch_add(n as u64, Ordering::Release);
        FED_SUM.fetch_add(sum(&data[..n]), Ordering::Relaxed);
        if n < data.len() {
            thread::yield_now();
        }
    }
    FED_ALL.store(true, Ordering::Release);
}

fn receive(near: &Turns<Stream>, into: &mut [u8], random: &mut Random) {
    let most = (random.len() as usize).min(into.len());
    let turn = near.take(1).expect("a stream");
    let rx = turn.rx();
    loop {
        let head = rx.head();
        let n = rx.peek(head, &mut into[..most]).expect("sound");
        if rx.take(head, head + n as u64).0 {
            RECEIVED.fetch_add(n as u64, Ordering::Relaxed);
            RECEIVED_SUM.fetch_add(sum(&into[..n]), Ordering::Relaxed);
            return;
        }
    }
}

fn sum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .map(|byte| u64::from(*byte) * u64::from(*byte) + 1)
        .sum()
}

/// Two signals to the calling thread every few microseconds. The second comes into the handler of the first, and none into its own.
struct Timers([libc::timer_t; 2]);

impl Timers {
    fn start() -> Self {
        Self([0, 1].map(|which| {
            let often = libc::timespec {
                tv_sec: 0,
                tv_nsec: [31_000, 47_000][which],
            };
            let often = libc::itimerspec {
                it_interval: often,
                it_value: often,
            };
            // SAFETY: the handler does what handlers may: atomics, copies, system calls. The structures are ours, and plain.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler as *const () as usize;
                action.sa_flags = libc::SA_RESTART;
                if which == 1 {
                    libc::sigaddset(&raw mut action.sa_mask, SIGNALS[0]);
                }
                assert_eq!(
                    libc::sigaction(SIGNALS[which], &raw const action, ptr::null_mut()),
                    0
                );
                let mut event: libc::sigevent = std::mem::zeroed();
                event.sigev_notify = libc::SIGEV_THREAD_ID;
                event.sigev_signo = SIGNALS[which];
                event.sigev_notify_thread_id = libc::gettid();
                let mut timer = std::mem::zeroed();
                let made =
                    libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer);
                assert_eq!(made, 0);
                assert_eq!(
                    libc::timer_settime(timer, 0, &raw const often, ptr::null_mut()),
                    0
                );
                timer
            }
        }))
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        for timer in self.0 {
            // SAFETY: made in `start`.
            unsafe { libc::timer_delete(timer) };
        }
    }
}

static NEAR: OnceLock<Turns<Stream>> = OnceLock::new();
static HANDLED: AtomicU64 = AtomicU64::new(0);
static BETWEEN: AtomicU64 = AtomicU64::new(0);
static NUMBERS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
static SENT: AtomicU64 = AtomicU64::new(0);
static RECEIVED: AtomicU64 = AtomicU64::new(0);
static RECEIVED_SUM: AtomicU64 = AtomicU64::new(0);
static FED: AtomicU64 = AtomicU64::new(0);
static FED_SUM: AtomicU64 = AtomicU64::new(0);
static FED_ALL: AtomicBool = AtomicBool::new(false);
static DONE: AtomicBool = AtomicBool::new(false);
const MAIN: usize = 0;
const SIGNALS: [libc::c_int; 2] = [libc::SIGALRM, libc::SIGUSR1];
const HANDLERS: u64 = 20_000;
