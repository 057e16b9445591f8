//! Hostile and dying processes, over shared memory.
//!
//! `SOVIA_LONG=1` runs the full numbers: 10,000 connects, 1,000 of them by processes that are killed.

use std::sync::{Mutex, PoisonError};

use conformance::lab::ShmLab;
use conformance::{hostile, is_long, watch};

fn alone(test: impl FnOnce(&ShmLab) + Send + 'static) {
    // What is left over is counted for the whole process.
    let _alone = HOUSE.lock().unwrap_or_else(PoisonError::into_inner);
    watch(move || test(&ShmLab::new(env!("CARGO_BIN_EXE_conformance-peer"))));
}

#[test]
fn garbage_in_all_that_it_reaches() {
    let (connections, steps) = if is_long() { (2000, 3000) } else { (300, 1000) };
    alone(move |lab| hostile::withstand_garbage(lab, connections, steps));
}

#[test]
fn nonsense_at_the_door() {
    let clients = if is_long() { 2000 } else { 100 };
    alone(move |lab| hostile::withstand_nonsense_at_the_door(lab, clients));
}

#[test]
fn connects_and_kills() {
    let (connects, kills) = if is_long() {
        (10_000, 1000)
    } else {
        (1000, 100)
    };
    alone(move |lab| hostile::churn(lab, connects, kills));
}

#[test]
fn a_flood_of_errors() {
    alone(|lab| hostile::flood_with_errors(lab));
}

#[test]
fn a_mapping_that_is_kept() {
    alone(|lab| hostile::keep_a_mapping(lab));
}

#[test]
fn writes_that_are_only_told_of() {
    alone(|lab| hostile::doubt_what_is_told(lab));
}

static HOUSE: Mutex<()> = Mutex::new(());
