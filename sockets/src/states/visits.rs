//! Which rows the tests of this process have made.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use super::{Row, connection};

/// A connection has made this step.
pub(crate) fn connection(from: connection::State, on: connection::Event) {
    let at = connection::ROWS
        .iter()
        .position(|row| (row.from, row.on) == (from, on));
    visit("connection", at.expect("it was looked up"));
}

/// Something has gone from one state to another, or stayed.
///
/// # Panics
/// If there is no row for that.
pub(crate) fn made<S: Copy + PartialEq + Debug, E: Copy + PartialEq + Debug>(
    table: &'static str,
    rows: &[Row<S, E>],
    (from, on, to): (S, E, S),
) {
    let at = rows
        .iter()
        .position(|row| (row.from, row.on, row.to) == (from, on, to));
    match at {
        Some(at) => visit(table, at),
        None => panic!("{table}: no row has {on:?} lead from {from:?} to {to:?}"),
    }
}

/// The rows that no test of this process has made.
pub(crate) fn missed<'a, S: PartialEq + Debug, E: PartialEq + Debug>(
    table: &'static str,
    rows: &'a [Row<S, E>],
) -> Vec<&'a Row<S, E>> {
    let visited = visited();
    let missed = rows.iter().enumerate();
    let missed = missed.filter(|(at, _)| !visited.contains(&(table, *at)));
    missed.map(|(_, row)| row).collect()
}

fn visit(table: &'static str, at: usize) {
    visited().insert((table, at));
}

fn visited() -> std::sync::MutexGuard<'static, BTreeSet<(&'static str, usize)>> {
    // Another test has failed, and says so.
    VISITED.lock().unwrap_or_else(PoisonError::into_inner)
}

static VISITED: Mutex<BTreeSet<(&'static str, usize)>> = Mutex::new(BTreeSet::new());
