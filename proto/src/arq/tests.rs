use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// What the medium does to one packet.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Arrives { after_us: u8 },
    Twice { after_us: u8, again_us: u8 },
    Lost,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => any::<u8>().prop_map(|after_us| Fate::Arrives { after_us }),
        1 => any::<(u8, u8)>().prop_map(|(after_us, again_us)| Fate::Twice { after_us, again_us }),
        2 => Just(Fate::Lost),
    ]
}

/// Two ends and what lies between them.
struct Pair {
    now: Duration,
    ends: [Arq<u32>; 2],
    /// By arrival, then by sending: the end it goes to, and the packet.
    wire: BTreeMap<(Duration, usize), (usize, Packet<u32>)>,
    sent: usize,
    copies: usize,
    fates: Vec<Fate>,
    delivered: [Vec<u32>; 2],
}

impl Pair {
    fn new(config: Config, fates: Vec<Fate>) -> Self {
        Self {
            now: Duration::ZERO,
            ends: [Arq::new(config), Arq::new(config)],
            wire: BTreeMap::new(),
            sent: 0,
            copies: 0,
            fates,
            delivered: [vec![], vec![]],
        }
    }

    fn push(&mut self, end: usize, bodies: impl IntoIterator<Item = u32>) {
        bodies
            .into_iter()
            .for_each(|body| self.ends[end].push(body));
        self.settle(end);
    }

    fn settle(&mut self, end: usize) {
        while let Some(body) = self.ends[end].poll_delivery() {
            self.delivered[end].push(body);
        }
        while let Some(packet) = self.ends[end].poll_transmit(self.now) {
            let arrives = Fate::Arrives { after_us: 50 };
            let fate = self.fates.get(self.sent).copied().unwrap_or(arrives);
            let (first, second) = match fate {
                Fate::Arrives { after_us } => (Some(after_us), None),
                Fate::Twice { after_us, again_us } => (Some(after_us), Some(again_us)),
                Fate::Lost => (None, None),
            };
            for after_us in [first, second].into_iter().flatten() {
                let due = self.now + Duration::from_micros(after_us.into());
                self.copies += 1;
                self.wire
                    .insert((due, self.copies), (1 - end, packet.clone()));
            }
            self.sent += 1;
        }
    }

    /// Until nothing can happen any more.
    fn run(&mut self) {
        for _ in 0..100_000 {
            let packet = self.wire.first_key_value().map(|(&(due, _), _)| due);
            let timer = self.ends.iter().filter_map(Arq::poll_timeout).min();
            match (packet, timer) {
                (None, None) => return,
                (Some(due), timer) if timer.is_none_or(|timer| due <= timer) => {
                    self.now = self.now.max(due);
                    if let Some((_, (end, packet))) = self.wire.pop_first() {
                        self.ends[end].handle_packet(self.now, packet);
                        self.settle(end);
                    }
                }
                (_, timer) => {
                    self.now = self.now.max(timer.unwrap_or_default());
                    for end in 0..2 {
                        self.ends[end].handle_timeout(self.now);
                        self.settle(end);
                    }
                }
            }
        }
        panic!("never ends: {:?}", self.ends);
    }
}

#[test]
fn a_perfect_medium_carries_each_body_once_and_one_acknowledgement() {
    let mut pair = Pair::new(Config::default(), vec![]);
    pair.push(0, 0..10);
    pair.run();
    assert_eq!(pair.delivered[1], Vec::from_iter(0..10));
    assert!(pair.ends[0].is_settled());
    assert_eq!(pair.sent, 20);
}

#[test]
fn no_more_than_the_window_is_in_flight() {
    let config = Config {
        window: 4,
        ..Config::default()
    };
    let mut arq = Arq::new(config);
    (0..9).for_each(|body| arq.push(body));
    let sent = std::iter::from_fn(|| arq.poll_transmit(Duration::ZERO)).count();
    assert_eq!(sent, 4);
    arq.handle_packet(
        Duration::ZERO,
        Packet::Ack(Ack {
            next: Seq(1),
            seen: 0b10,
        }),
    );
    let sent = std::iter::from_fn(|| arq.poll_transmit(Duration::ZERO)).count();
    assert_eq!(sent, 1, "the one behind the window");
}

#[test]
fn a_body_that_three_have_overtaken_is_repeated_without_waiting() {
    let mut fates = vec![Fate::Arrives { after_us: 50 }; 8];
    fates[1] = Fate::Lost;
    let mut pair = Pair::new(Config::default(), fates);
    pair.push(0, 0..8);
    pair.run();
    assert_eq!(pair.delivered[1], Vec::from_iter(0..8));
    assert!(pair.now < Config::default().rto_initial, "{:?}", pair.now);
}

#[test]
fn it_gives_up_within_a_bound() {
    let config = Config::default();
    let mut pair = Pair::new(config, vec![Fate::Lost; 1000]);
    pair.push(0, 0..3);
    pair.run();
    assert!(pair.ends[0].is_broken());
    assert!(pair.delivered[1].is_empty());
    assert!(pair.now <= config.rto_max * (config.tries_max + 1));
    assert_eq!(pair.sent, 3 * (config.tries_max as usize + 1));
}

#[test]
fn acknowledgements_of_what_was_never_sent_are_ignored() {
    for next in [1, 2, 63, u32::MAX, 1 << 31] {
        let mut arq = Arq::new(Config::default());
        arq.push(7);
        let lie = Ack {
            next: Seq(next),
            seen: u64::MAX,
        };
        arq.handle_packet(Duration::ZERO, Packet::Ack(lie));
        assert!(!arq.is_settled(), "{next}");
        assert!(arq.poll_transmit(Duration::ZERO).is_some(), "{next}");
    }
}

proptest! {
    #[test]
    fn each_body_comes_out_once_and_in_order(
        fates in prop::collection::vec(fate(), 0..400),
        counts in [0_u32..150, 0_u32..150],
        window in 1_u32..=WINDOW_MAX,
        first: u32,
    ) {
        let config = Config {
            window,
            first: Seq(first),
            rto_initial: Duration::from_millis(1),
            tries_max: 20,
            ..Config::default()
        };
        let mut pair = Pair::new(config, fates);
        for (end, &count) in counts.iter().enumerate() {
            pair.push(end, 0..count);
        }
        pair.run();
        for (end, &count) in counts.iter().enumerate() {
            prop_assert_eq!(&pair.delivered[1 - end], &Vec::from_iter(0..count));
            prop_assert!(pair.ends[end].is_settled());
            prop_assert!(!pair.ends[end].is_broken());
        }
    }

    #[test]
    fn under_any_loss_what_comes_out_is_a_beginning_and_an_end_gives_up(
        fates in prop::collection::vec(prop_oneof![1 => fate(), 3 => Just(Fate::Lost)], 4000),
        count in 1_u32..150,
    ) {
        let config = Config { tries_max: 3, rto_max: Duration::from_millis(20), ..Config::default() };
        let mut pair = Pair::new(config, fates);
        pair.push(0, 0..count);
        pair.run();
        let came = &pair.delivered[1];
        prop_assert_eq!(came, &Vec::from_iter(0..came.len() as u32));
        prop_assert!(pair.ends[0].is_broken() || pair.ends[0].is_settled());
        prop_assert!(came.len() as u32 == count || pair.ends[0].is_broken());
    }

    #[test]
    fn packets_that_mean_nothing_do_no_harm(
        packets in prop::collection::vec(any::<(u32, u32, u64, Option<u32>)>(), 0..100),
    ) {
        let mut arq = Arq::new(Config::default());
        (0..10).for_each(|body| arq.push(body));
        let mut came = vec![];
        for (n, (seq, next, seen, body)) in packets.into_iter().enumerate() {
            let now = Duration::from_millis(n as u64);
            let ack = Ack { next: Seq(next), seen };
            let packet = match body {
                Some(body) => Packet::Data { seq: Seq(seq), ack, body },
                None => Packet::Ack(ack),
            };
            arq.handle_packet(now, packet);
            arq.handle_timeout(now);
            came.extend(std::iter::from_fn(|| arq.poll_delivery()));
            while arq.poll_transmit(now).is_some() {}
        }
        prop_assert!(came.len() <= 100);
    }
}
