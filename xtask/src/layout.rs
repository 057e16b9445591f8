//! Whether what `abi/preload/layout.ld` puts in order is in libsovia.so: a pattern of a function that was renamed would find nothing, and nobody would
//! notice.

use std::ops::Range;
use std::path::Path;

use crate::abi::ask;

/// True when most patterns find a function there. One may have gone into its callers: which do depends on the compiler.
pub(crate) fn run(root: &Path, library: &Path) -> Result<bool, String> {
    let path = root.join("abi/preload/layout.ld");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let place = section(&ask("readelf", &["-SW"], library)?).ok_or_else(|| {
        format!(
            "{}: there is no {SECTION}: was the linker given layout.ld?",
            library.display()
        )
    })?;
    let listing = ask("nm", &["--defined-only"], library)?;
    let functions: Vec<&str> = functions(&listing, &place).collect();
    let patterns: Vec<&str> = patterns(&text).collect();
    let is_lost = |pattern: &&str| !functions.iter().any(|name| matches(pattern, name));
    let lost: Vec<&str> = patterns.iter().copied().filter(is_lost).collect();
    for pattern in &lost {
        println!("abi/preload/layout.ld: {pattern} finds no function");
    }
    println!(
        "layout: {} patterns find {} functions, {} find none",
        patterns.len(),
        functions.len(),
        lost.len()
    );
    Ok(!patterns.is_empty() && lost.len() * LOST_MOST <= patterns.len())
}

/// Where the section is, as `readelf` says: `[15] .text.calls PROGBITS 000000000011fb00 11eb00 04b54f`.
fn section(listing: &str) -> Option<Range<u64>> {
    let line = listing.lines().find(|line| line.contains(SECTION))?;
    let mut fields = line
        .split_whitespace()
        .skip_while(|field| *field != SECTION);
    let start = u64::from_str_radix(fields.nth(2)?, 16).ok()?;
    let size = u64::from_str_radix(fields.nth(1)?, 16).ok()?;
    Some(start..start + size)
}

/// The symbols there, as `nm` says.
fn functions<'a>(listing: &'a str, place: &Range<u64>) -> impl Iterator<Item = &'a str> {
    listing.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let address = u64::from_str_radix(fields.next()?, 16).ok()?;
        let name = fields.nth(1)?;
        place.contains(&address).then_some(name)
    })
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

const SECTION: &str = ".text.calls";
/// One in so many may find nothing.
const LOST_MOST: usize = 4;

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
    fn what_lies_elsewhere_is_not_found() {
        let said = "  [15] .text.calls PROGBITS 0000000000001000 001000 000200 00  AX  0   0 16";
        let place = section(said).expect("a section");
        assert_eq!(place, 0x1000..0x1200);
        let listing =
            "0000000000001000 T recv\n0000000000001200 t late\n0000000000000fff d early\n";
        assert_eq!(functions(listing, &place).collect::<Vec<_>>(), ["recv"]);
        assert_eq!(
            section("  [16] .text PROGBITS 0000000000001000 001000 000200"),
            None
        );
    }

    #[test]
    fn a_pattern_is_a_line() {
        let text = "SECTIONS {\n  .text.calls : {\n    /* close */\n    *(.text.close)\n  }\n}\n";
        assert_eq!(patterns(text).collect::<Vec<_>>(), ["close"]);
    }
}
