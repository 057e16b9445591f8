//! Messages of a few bytes, answered one by one: what goes in the line that both directions share.

use std::cell::Cell;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use via::provider::OpenOptions;
use via::{
    Access, Completion, Descriptor, Done, Fault, Memory, Nic, Ptag, Queue, Region, Reliability, Vi,
    ViConfig, ViState,
};

thread_local! {
    /// Those that this thread has sent.
    pub(super) static NOTES: Cell<u32> = const { Cell::new(0) };
}

/// How many of the messages that this thread sends in `work` are notes.
fn notes(work: impl FnOnce()) -> u32 {
    let before = NOTES.get();
    work();
    NOTES.get() - before
}

struct End {
    vi: Vi,
    buffer: Region,
    tag: Ptag,
    nic: Nic,
}

fn end(level: Reliability, options: OpenOptions) -> End {
    let nic = Nic::open_with(&crate::DRIVER, options).expect("opens");
    let tag = nic.create_ptag().expect("a tag");
    let config = ViConfig::new(&tag).reliability(level);
    let vi = nic.create_vi(&config).expect("a VI");
    let memory = Memory::private(4096).expect("memory");
    memory.write(0, &[FILL; 4096]).expect("in range");
    let buffer = nic
        .register(memory, &tag, Access::Local)
        .expect("registers");
    End {
        vi,
        buffer,
        tag,
        nic,
    }
}

fn pair(level: Reliability) -> (End, End) {
    pair_with(level, OpenOptions::default())
}

fn pair_with(level: Reliability, options: OpenOptions) -> (End, End) {
    let (a, b) = (end(level, options), end(level, options));
    connect(&a.vi, &b.vi);
    (a, b)
}

fn connect(a: &Vi, b: &Vi) {
    let export = a.export().expect("exports");
    b.import(&export.blob, export.fds).expect("imports");
}

impl End {
    fn post(&self, len: u32) {
        self.post_in(0, len);
    }

    fn post_in(&self, slot: u32, len: u32) {
        let at = SLOT * (1 + slot);
        let room = Descriptor::recv().segment(&self.buffer, at..at + len);
        self.vi.post_recv(&room, 1).expect("posts");
    }

    fn send(&self, bytes: &[u8], immediate: Option<u32>) {
        let memory = self.buffer.memory();
        memory.write(0, bytes).expect("in range");
        let mut message = Descriptor::send().segment(&self.buffer, 0..bytes.len() as u32);
        if let Some(word) = immediate {
            message = message.immediate(word);
        }
        self.vi.post_send(&message, 2).expect("posts");
    }

    fn received(&self) -> Completion {
        loop {
            match self.vi.recv_done().expect("alive") {
                Done::Completed(completion) => return completion,
                Done::NotDone => thread::yield_now(),
                Done::Empty => unreachable!("one is posted"),
            }
        }
    }

    fn takes(&self, bytes: &[u8], immediate: Option<u32>) {
        self.holds(0, self.received(), bytes, immediate);
    }

    /// The same, asleep until it comes; and posts the next receive.
    fn wakes(&self, bytes: &[u8]) {
        let completion = self.vi.recv_wait(SOON).expect("comes");
        self.holds(0, completion, bytes, None);
        self.post(8);
    }

    /// Sees that what was sent is in its place, and nothing beyond its end.
    fn holds(&self, slot: u32, completion: Completion, bytes: &[u8], immediate: Option<u32>) {
        let completion = completion.ok().expect("received");
        assert_eq!(completion.token, 1);
        assert_eq!(completion.length as usize, bytes.len());
        assert_eq!(completion.immediate, immediate);
        let mut got = [0; SLOT as usize];
        let at = (SLOT * (1 + slot)) as usize;
        let memory = self.buffer.memory();
        memory.read(at, &mut got).expect("in range");
        assert_eq!(&got[..bytes.len()], bytes);
        assert!(got[bytes.len()..].iter().all(|&byte| byte == FILL));
        memory.write(at, &[FILL; SLOT as usize]).expect("in range");
    }

    fn sent(&self) {
        loop {
            if let Done::Completed(completion) = self.vi.send_done().expect("alive") {
                assert_eq!(completion.ok().expect("sent").token, 2);
                return;
            }
            // Where done means arrived, the other end has said so by now, or says so when it looks.
        }
    }
}

fn exchange(a: &End, b: &End, turns: u32) {
    for turn in 0..turns {
        for (from, to) in [(a, b), (b, a)] {
            let bytes: Vec<u8> = (0..turn % 21).map(|i| (i + turn) as u8).collect();
            let immediate = turn.is_multiple_of(7).then_some(turn);
            to.post(32);
            from.send(&bytes, immediate);
            to.takes(&bytes, immediate);
            from.sent();
        }
    }
}

#[test]
fn short_messages_and_their_answers_arrive_whole() {
    for level in Reliability::ALL {
        let (a, b) = pair(level);
        let notes = notes(|| exchange(&a, &b, 2000));
        assert!(notes > 2000, "{level}: most of 4000 are notes, not {notes}");
    }
}

#[test]
fn one_that_sleeps_is_woken() {
    let options = OpenOptions {
        sleeps_at_once: true,
        ..OpenOptions::default()
    };
    for level in Reliability::ALL {
        let (a, b) = pair_with(level, options);
        let turns = 0..300u64;
        a.post(8);
        b.post(8);
        thread::scope(|scope| {
            scope.spawn(|| {
                for turn in turns.clone() {
                    b.wakes(&turn.to_ne_bytes());
                    b.send(&(!turn).to_ne_bytes(), None);
                    b.vi.send_wait(SOON).expect("sent");
                }
            });
            for turn in turns.clone() {
                a.send(&turn.to_ne_bytes(), None);
                a.wakes(&(!turn).to_ne_bytes());
                a.vi.send_wait(SOON).expect("sent");
            }
        });
    }
}

#[test]
fn a_completion_queue_hears_of_each() {
    let level = Reliability::ReliableDelivery;
    let (a, mut b) = (
        end(level, OpenOptions::default()),
        end(level, OpenOptions::default()),
    );
    let cq = b.nic.create_cq(8).expect("a completion queue");
    let config = ViConfig::new(&b.tag).reliability(level).recv_cq(&cq);
    b.vi = b.nic.create_vi(&config).expect("a VI");
    connect(&a.vi, &b.vi);
    a.post(8);
    for turn in 0..300u64 {
        b.post(8);
        a.send(&turn.to_ne_bytes(), None);
        assert_eq!(cq.wait(SOON).expect("hears").vi, b.vi.id());
        b.takes(&turn.to_ne_bytes(), None);
        b.send(&turn.to_ne_bytes(), None);
        a.takes(&turn.to_ne_bytes(), None);
        a.post(8);
        a.sent();
        b.sent();
    }
    assert_eq!(cq.done().expect("alive"), None);
}

#[test]
fn a_handler_is_called_with_it() {
    let (a, b) = pair(Reliability::ReliableDelivery);
    let (say, hear) = mpsc::channel();
    for turn in 0..100u64 {
        b.post(8);
        let say = say.clone();
        let handler = Box::new(move |completion| say.send(completion).expect("somebody hears"));
        let notified = b.vi.ops().notify(Queue::Recv, handler);
        notified.expect("will be called");
        a.send(&turn.to_ne_bytes(), None);
        let completion: Completion = hear.recv().expect("called");
        assert_eq!(completion.ok().expect("received").length, 8);
        a.post(8);
        b.send(&[], None);
        a.takes(&[], None);
    }
}

#[test]
fn those_that_cross_arrive_and_so_does_what_follows() {
    let (a, b) = pair(Reliability::ReliableDelivery);
    for round in 0..20u64 {
        a.post(8);
        b.post(8);
        let crossed = notes(|| {
            a.send(&round.to_ne_bytes(), None);
            b.send(&round.to_ne_bytes(), None);
        });
        assert_eq!(crossed, 2, "round {round}");
        for end in [&a, &b] {
            end.takes(&round.to_ne_bytes(), None);
            end.sent();
        }
        // A lap of cells later there are notes again.
        exchange(&a, &b, LAP);
        let again = notes(|| exchange(&a, &b, 7));
        assert_eq!(again, 14, "round {round}");
    }
}

#[test]
fn one_that_nobody_waits_for_breaks_the_connection_or_is_dropped() {
    let (a, b) = pair(Reliability::ReliableDelivery);
    a.send(&[1; 8], None);
    assert_eq!(b.vi.recv_done(), Ok(Done::Empty));
    assert_eq!(b.vi.state(), Ok(ViState::Error));

    let (a, b) = pair(Reliability::Unreliable);
    a.send(&[1; 8], None);
    assert_eq!(b.vi.recv_done(), Ok(Done::Empty));
    assert_eq!(b.vi.state(), Ok(ViState::Connected));
    exchange(&a, &b, 7);
}

#[test]
fn one_that_came_before_the_end_is_taken() {
    for level in [Reliability::Unreliable, Reliability::ReliableDelivery] {
        let (a, b) = pair(level);
        b.post(8);
        a.send(&[1; 8], None);
        a.vi.disconnect().expect("was connected");
        b.takes(&[1; 8], None);
        assert_eq!(b.vi.state(), Ok(ViState::Error));
    }
}

#[test]
fn one_that_came_before_a_bad_receive_is_taken() {
    let (a, b) = pair(Reliability::ReliableDelivery);
    b.post(8);
    a.send(&[1; 8], None);
    let pieces = b.nic.attributes().max_segments_per_desc;
    let bad = (0..=pieces).fold(Descriptor::recv(), |bad, _| bad.segment(&b.buffer, 0..1));
    b.vi.post_recv(&bad, 3).expect("is told later");
    b.takes(&[1; 8], None);
    let told = b.received();
    assert_eq!((told.token, told.ok()), (3, Err(Fault::Format)));
    assert_eq!(b.vi.state(), Ok(ViState::Error));
}

#[test]
fn several_before_an_answer_stay_in_order() {
    let (a, b) = pair(Reliability::ReliableDelivery);
    for turn in 0..500u32 {
        for (from, to) in [(&a, &b), (&b, &a)] {
            let count = 1 + turn % 5;
            (0..count).for_each(|number| to.post_in(number, 8));
            for number in 0..count {
                from.send(&(turn * 8 + number).to_ne_bytes(), None);
            }
            for number in 0..count {
                let bytes = (turn * 8 + number).to_ne_bytes();
                to.holds(number, to.received(), &bytes, None);
                from.sent();
            }
        }
    }
}

#[test]
fn one_that_is_too_long_for_its_receive_breaks_the_connection() {
    let (a, b) = pair(Reliability::ReliableDelivery);
    exchange(&a, &b, 100);
    b.post(8);
    a.send(&[1; 9], None);
    assert_eq!(b.received().ok(), Err(Fault::Length));
    assert_eq!(b.vi.state(), Ok(ViState::Error));
}

#[test]
fn memory_that_is_gone_or_anothers_is_not_touched() {
    let (a, b) = pair(Reliability::ReliableDelivery);
    exchange(&a, &b, 100);
    let other = b.nic.create_ptag().expect("a tag");
    let memory = Memory::private(64).expect("memory");
    let foreign = b
        .nic
        .register(memory, &other, Access::Local)
        .expect("registers");
    let room = Descriptor::recv().segment(&foreign, 0..8);
    b.vi.post_recv(&room, 1).expect("posts");
    a.send(&[1; 8], None);
    assert_eq!(b.received().ok(), Err(Fault::Protection));
    let mut bytes = [1; 8];
    foreign.memory().read(0, &mut bytes).expect("in range");
    assert_eq!(bytes, [0; 8]);

    let (a, b) = pair(Reliability::ReliableDelivery);
    exchange(&a, &b, 100);
    let memory = Memory::private(64).expect("memory");
    let gone = a
        .nic
        .register(memory, &a.tag, Access::Local)
        .expect("registers");
    let segment = via::Segment {
        addr: gone.addr(),
        handle: gone.handle(),
        len: 8,
    };
    drop(gone);
    b.post(8);
    let message = Descriptor::send().raw_segment(segment);
    a.vi.post_send(&message, 2).expect("posts");
    let done = a.vi.send_done().expect("alive").completion();
    assert_eq!(done.map(Completion::ok), Some(Err(Fault::Protection)));
}

/// Cells of a ring.
const LAP: u32 = 64;
/// The first is for what is sent.
const SLOT: u32 = 64;
const FILL: u8 = 0xee;
const SOON: Option<Duration> = Some(Duration::from_secs(10));
