//! What `docs/sockets.md` shows of the tables.

use std::fmt::Write;
use std::path::Path;

use super::{Row, connection, receiver, sender};

#[test]
fn the_document_shows_the_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sockets.md");
    let document = std::fs::read_to_string(&path).expect("the document");
    let mut wanted = document.clone();
    for (name, text) in [
        ("connection", connection()),
        ("sender", sender()),
        ("receiver", receiver()),
    ] {
        let (begin, end) = (format!("<!-- {name}: "), format!("<!-- end of {name} -->"));
        let (before, rest) = wanted.split_once(&begin).expect("where it begins");
        let (_, after) = rest.split_once(&end).expect("where it ends");
        wanted = format!("{before}{begin}made by {RENEW} -->\n{text}\n{end}{after}");
    }
    if std::env::var_os("SOVIA_WRITE_DOCS").is_some() {
        std::fs::write(&path, &wanted).expect("the document can be written");
    } else {
        assert!(
            document == wanted,
            "docs/sockets.md has other states: {RENEW}"
        );
    }
}

fn connection() -> String {
    use connection::{Event, ROWS, State};
    let states = State::ALL
        .iter()
        .map(|state| (state.word(), state.meaning()));
    let events = Event::ALL
        .iter()
        .map(|event| (event.word(), event.meaning()));
    page(ROWS, State::word, Event::word, states, events)
}

fn sender() -> String {
    use sender::{Event, ROWS, State};
    let states = State::ALL
        .iter()
        .map(|state| (state.word(), state.meaning()));
    let events = Event::ALL
        .iter()
        .map(|event| (event.word(), event.meaning()));
    page(ROWS, State::word, Event::word, states, events)
}

fn receiver() -> String {
    use receiver::{Event, ROWS, State};
    let states = State::ALL
        .iter()
        .map(|state| (state.word(), state.meaning()));
    let events = Event::ALL
        .iter()
        .map(|event| (event.word(), event.meaning()));
    page(ROWS, State::word, Event::word, states, events)
}

fn page<S: Copy + PartialEq, E: Copy + PartialEq>(
    rows: &[Row<S, E>],
    state: fn(S) -> &'static str,
    event: fn(E) -> &'static str,
    states: impl Iterator<Item = (&'static str, &'static str)>,
    events: impl Iterator<Item = (&'static str, &'static str)>,
) -> String {
    let mut text = drawing(rows, state, event);
    text.push_str("\n| state | |\n|---|---|\n");
    for (word, meaning) in states {
        let _ = writeln!(text, "| {word} |{} |", meaning);
    }
    text.push_str("\n| event | in state | leads to | |\n|---|---|---|---|\n");
    for (word, meaning) in events {
        let _ = writeln!(text, "| **{word}** | | |{meaning} |");
        let of_this = rows.iter().filter(|row| event(row.on) == word);
        let mut idle: Vec<(&'static str, Vec<&'static str>)> = Vec::new();
        for row in of_this {
            let (from, to) = (state(row.from), state(row.to));
            if from != to {
                let _ = writeln!(text, "| | {from} | {to} |{} |", what(row));
            } else if !row.done.is_empty() {
                let _ = writeln!(text, "| | {from} | |{} |", what(row));
            } else if let Some((_, states)) = idle.iter_mut().find(|(when, _)| *when == row.when) {
                states.push(from);
            } else {
                idle.push((row.when, vec![from]));
            }
        }
        for (when, states) in idle {
            let case = if when.is_empty() {
                String::new()
            } else {
                format!("*{when}:* ")
            };
            let _ = writeln!(text, "| | {} | | {case}nothing |", states.join(", "));
        }
    }
    text
}

/// In which case, what is done, and for which reasons.
fn what<S, E>(row: &Row<S, E>) -> String {
    let mut text = String::new();
    if !row.when.is_empty() {
        let _ = write!(text, " *{}:*", row.when);
    }
    if !row.done.is_empty() {
        let _ = write!(text, " {}", row.done);
    }
    if !row.reasons.is_empty() {
        let mut numbers: Vec<_> = row.reasons.iter().map(|reason| reason.number()).collect();
        numbers.sort_unstable();
        let numbers: Vec<_> = numbers.iter().map(u16::to_string).collect();
        let _ = write!(text, " (reason {})", numbers.join(", "));
    }
    text
}

/// The changes, one arrow for all that lead the same way, as Mermaid draws them.
fn drawing<S: Copy + PartialEq, E: Copy + PartialEq>(
    rows: &[Row<S, E>],
    state: fn(S) -> &'static str,
    event: fn(E) -> &'static str,
) -> String {
    let mut arrows: Vec<(S, S, Vec<&'static str>)> = Vec::new();
    for row in rows.iter().filter(|row| row.from != row.to) {
        let word = event(row.on);
        match arrows
            .iter_mut()
            .find(|arrow| (arrow.0, arrow.1) == (row.from, row.to))
        {
            Some((_, _, words)) if !words.contains(&word) => words.push(word),
            Some(_) => {}
            None => arrows.push((row.from, row.to, vec![word])),
        }
    }
    let mut text = String::from("\n```mermaid\nstateDiagram-v2\n");
    for (from, to, words) in arrows {
        let _ = writeln!(
            text,
            "    {} --> {}: {}",
            state(from),
            state(to),
            words.join(", ")
        );
    }
    text.push_str("```\n");
    text
}

const RENEW: &str = "`SOVIA_WRITE_DOCS=1 cargo test -p sockets --lib states::page`";
