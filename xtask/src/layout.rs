//! Whether what `abi/preload/layout.ld` puts in order is in libsovia.so: a pattern of a function that was renamed would find nothing, and nobody would
//! notice.

use std::path::Path;

use crate::abi::ask;

/// True when most patterns find a function. One may have gone into its callers: which do depends on the compiler.
pub(crate) fn run(root: &Path, library: &Path) -> Result<bool, String> {
    let path = root.join("abi/preload/layout.ld");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let listing = ask("nm", &["--defined-only"], library)?;
    let functions: Vec<&str> = listing
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    let patterns: Vec<&str> = patterns(&text).collect();
    let is_lost = |pattern: &&str| !functions.iter().any(|name| matches(pattern, name));
    let lost: Vec<&str> = patterns.iter().copied().filter(is_lost).collect();
    for pattern in &lost {
        println!("abi/preload/layout.ld: {pattern} finds no function");
    }
    println!(
        "layout: {} patterns, {} of them find nothing",
        patterns.len(),
        lost.len()
    );
    Ok(!patterns.is_empty() && lost.len() * LOST_MOST <= patterns.len())
}

/// The names of sections without `.text.`.
fn patterns(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("*(.text.")?.strip_suffix(')'))
}

/// As the linker: a star is any number of characters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = rest.get(at + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.is_empty() || pattern.ends_with('*')
}

/// One in so many may find nothing.
const LOST_MOST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_number_of_characters() {
        assert!(matches("close", "close"));
        assert!(!matches("close", "closes"));
        assert!(matches(
            "*5table7replace*",
            "_ZN7sockets5table7replace17h0E"
        ));
        assert!(matches("*4conn*2go*", "_ZN7sockets4conn5steps2go17h0E"));
        assert!(!matches("*2go*4conn", "_ZN7sockets4conn5steps2go17h0E"));
    }

    #[test]
    fn a_pattern_is_a_line() {
        let text = "SECTIONS {\n  .text.calls : {\n    /* close */\n    *(.text.close)\n  }\n}\n";
        assert_eq!(patterns(text).collect::<Vec<_>>(), ["close"]);
    }
}
