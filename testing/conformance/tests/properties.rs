//! Lists of operations against the models of `conformance::oracle`, on both providers.
//!
//! A failure prints the list, made as short as it gets, and the seed that repeats it.

use conformance::Lab;
use conformance::lab::{ShmLab, SimLab};
use conformance::oracle::{
    CqOp, End, QueueOp, RegionOp, Rights, check_completions, check_queues, check_regions,
};
use proptest::prelude::*;
use via::{Queue, Reliability};

fn labs() -> [Box<dyn Lab>; 2] {
    [Box::new(ShmLab::new("")), Box::new(SimLab::new(SEED))]
}

fn on_each(check: impl Fn(&dyn Lab)) {
    for lab in labs() {
        let _part = lab.take_part();
        check(&*lab);
    }
}

fn cases() -> u32 {
    if conformance::is_long() { 3000 } else { 60 }
}

fn level() -> impl Strategy<Value = Reliability> {
    prop::sample::select(Reliability::ALL.to_vec())
}

fn queue_ops() -> impl Strategy<Value = Vec<QueueOp>> {
    let end = || prop::sample::select(vec![End::A, End::B]);
    let queue = || prop::sample::select(vec![Queue::Send, Queue::Recv]);
    let op = prop_oneof![
        30 => end().prop_map(QueueOp::Receive),
        30 => (end(), any::<u16>()).prop_map(|(end, len)| QueueOp::Send(end, len)),
        20 => (end(), queue()).prop_map(|(end, queue)| QueueOp::Look(end, queue)),
        20 => (end(), queue()).prop_map(|(end, queue)| QueueOp::Wait(end, queue)),
        2 => end().prop_map(QueueOp::Disconnect),
        1 => Just(QueueOp::Reconnect),
    ];
    prop::collection::vec(op, 0..200)
}

fn region_ops() -> impl Strategy<Value = Vec<RegionOp>> {
    let rights = || {
        (prop::bool::weighted(0.8), prop::bool::weighted(0.8))
            .prop_map(|(own_tag, write)| Rights { own_tag, write })
    };
    let range = || (any::<u8>(), any::<u16>(), any::<u16>());
    let op = prop_oneof![
        10 => (any::<u16>(), any::<bool>(), rights())
            .prop_map(|(len, shared, rights)| RegionOp::Register { len, shared, rights }),
        5 => any::<u8>().prop_map(RegionOp::Deregister),
        5 => (any::<u8>(), rights()).prop_map(|(which, rights)| RegionOp::Set(which, rights)),
        5 => any::<u8>().prop_map(RegionOp::Query),
        20 => range().prop_map(|(which, at, len)| RegionOp::Write(which, at, len)),
        10 => range().prop_map(|(which, at, len)| RegionOp::Send(which, at, len)),
    ];
    prop::collection::vec(op, 0..60)
}

fn cq_ops() -> impl Strategy<Value = Vec<CqOp>> {
    let op = prop_oneof![
        20 => any::<u8>().prop_map(CqOp::Receive),
        20 => any::<u8>().prop_map(CqOp::Send),
        20 => any::<u8>().prop_map(CqOp::Look),
        10 => any::<u8>().prop_map(CqOp::Wait),
        5 => (any::<u8>(), 0..40u8).prop_map(|(cq, entries)| CqOp::Resize(cq, entries)),
        2 => any::<u8>().prop_map(CqOp::Reconnect),
    ];
    prop::collection::vec(op, 0..150)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn work_queues(level in level(), ops in queue_ops()) {
        on_each(|lab| check_queues(lab, level, &ops));
    }

    #[test]
    fn registrations(ops in region_ops()) {
        on_each(|lab| check_regions(lab, &ops));
    }

    #[test]
    fn completion_queues(level in level(), ops in cq_ops()) {
        on_each(|lab| check_completions(lab, level, &ops));
    }
}

const SEED: u64 = 0x0dd5;
