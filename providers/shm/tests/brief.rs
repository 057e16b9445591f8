//! Messages of a few bytes, answered one by one: what goes in the line that both directions share.

use via::{
    Access, Completion, Descriptor, Done, Fault, Memory, Nic, Ptag, Region, Reliability, Vi,
    ViConfig, ViState,
};

struct End {
    vi: Vi,
    buffer: Region,
    tag: Ptag,
    nic: Nic,
}

fn end(level: Reliability) -> End {
    let nic = Nic::open(&shm::DRIVER).expect("opens");
    let tag = nic.create_ptag().expect("a tag");
    let config = ViConfig::new(&tag).reliability(level);
    let vi = nic.create_vi(&config).expect("a VI");
    let memory = Memory::private(4096).expect("memory");
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
    let (a, b) = (end(level), end(level));
    let export = a.vi.export().expect("exports");
    b.vi.import(&export.blob, export.fds).expect("imports");
    (a, b)
}

impl End {
    fn post(&self, len: u32) {
        let room = Descriptor::recv().segment(&self.buffer, 64..64 + len);
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
                Done::NotDone => std::thread::yield_now(),
                Done::Empty => unreachable!("one is posted"),
            }
        }
    }

    /// Takes the message that was sent, and sees that it did not write beyond its end.
    fn takes(&self, bytes: &[u8], immediate: Option<u32>) {
        let completion = self.received().ok().expect("received");
        assert_eq!(completion.token, 1);
        assert_eq!(completion.length as usize, bytes.len());
        assert_eq!(completion.immediate, immediate);
        let mut got = [0; 64];
        self.buffer.memory().read(64, &mut got).expect("in range");
        assert_eq!(&got[..bytes.len()], bytes);
        assert!(got[bytes.len()..].iter().all(|&byte| byte == FILL));
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

    fn wipe(&self) {
        let memory = self.buffer.memory();
        memory.write(64, &[FILL; 64]).expect("in range");
    }
}

/// Enough that most of them are notes.
fn exchange(a: &End, b: &End, turns: u32) {
    for turn in 0..turns {
        for (from, to) in [(a, b), (b, a)] {
            let bytes: Vec<u8> = (0..turn % 21).map(|i| (i + turn) as u8).collect();
            let immediate = turn.is_multiple_of(7).then_some(turn);
            to.wipe();
            to.post(32);
            from.send(&bytes, immediate);
            to.takes(&bytes, immediate);
            from.sent();
        }
    }
}

#[test]
fn short_messages_and_their_answers_arrive_whole() {
    for level in [Reliability::Unreliable, Reliability::ReliableDelivery] {
        let (a, b) = pair(level);
        exchange(&a, &b, 2000);
    }
}

#[test]
fn several_before_an_answer_stay_in_order() {
    let (a, b) = pair(Reliability::ReliableDelivery);
    for turn in 0..500u32 {
        for (from, to) in [(&a, &b), (&b, &a)] {
            let count = 1 + turn % 5;
            (0..count).for_each(|_| to.post(8));
            for number in 0..count {
                from.send(&(turn * 8 + number).to_ne_bytes(), None);
            }
            for number in 0..count {
                to.wipe();
                to.takes(&(turn * 8 + number).to_ne_bytes(), None);
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

const FILL: u8 = 0xee;
