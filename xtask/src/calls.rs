//! What libsovia.so exports, what `abi/preload/calls.txt` says of it, and `docs/calls.md`, which is made from that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::abi::ask;
use crate::deb::newest;

/// A line of the list.
struct Call<'a> {
    name: &'a str,
    class: &'a str,
    note: &'a str,
}

/// The library of the release build, wherever cargo put it.
pub(crate) fn default_library(root: &Path) -> Result<PathBuf, String> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    newest(&root.join(target).join("release"), "libsovia.so")
}

/// True when the library exports what the list says, and the document is what the list gives; with `write`, writes the document instead.
pub(crate) fn run(root: &Path, library: Option<&Path>, write: bool) -> Result<bool, String> {
    let path = root.join("abi/preload/calls.txt");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let calls = parse(&text)?;
    let document = root.join("docs/calls.md");
    let wanted = render(&calls);
    if write {
        std::fs::write(&document, wanted).map_err(|e| format!("{}: {e}", document.display()))?;
        return Ok(true);
    }
    let mut good = std::fs::read_to_string(&document).is_ok_and(|found| found == wanted);
    if !good {
        println!(
            "docs/calls.md is not what abi/preload/calls.txt gives: cargo xtask calls --write"
        );
    }
    if let Some(library) = library {
        good &= compare(&calls, library)?;
        good &= needs_little(library)?;
    }
    Ok(good)
}

/// Whether each program that is started has no other library loaded for this one than those that it has anyway. Elsewhere than on x86-64 there is one for
/// [the unwinder](../../abi/preload/src/unwind.rs).
fn needs_little(library: &Path) -> Result<bool, String> {
    let listing = ask("readelf", &["-dW"], library)?;
    let mut good = true;
    for line in listing.lines().filter(|line| line.contains("(NEEDED)")) {
        let is_usual = line.contains("[libc.so.") || line.contains("[ld-linux");
        if cfg!(target_arch = "x86_64") && !is_usual {
            println!("{}: needs more than libc: {line}", library.display());
            good = false;
        }
    }
    Ok(good)
}

fn compare(calls: &[Call<'_>], library: &Path) -> Result<bool, String> {
    let listing = ask("nm", &["-D", "--defined-only"], library)?;
    let found: BTreeSet<&str> = listing
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    let taken: BTreeSet<&str> = calls
        .iter()
        .filter(|call| call.class != "-")
        .map(|call| call.name)
        .collect();
    for name in taken.difference(&found) {
        println!("abi/preload/calls.txt: {name} is in the list and not exported");
    }
    for name in found.difference(&taken) {
        println!(
            "{}: {name} is exported and not in abi/preload/calls.txt",
            library.display()
        );
    }
    println!(
        "calls: {} symbols exported, {} in the list",
        found.len(),
        taken.len()
    );
    Ok(found == taken)
}

fn parse(text: &str) -> Result<Vec<Call<'_>>, String> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines
        .map(|line| {
            let mut fields = line.split('|').map(str::trim);
            match (fields.next(), fields.next(), fields.next(), fields.next()) {
                (
                    Some(name),
                    Some(class @ ("fast" | "slow" | "note" | "own" | "-")),
                    Some(note),
                    None,
                ) => Ok(Call { name, class, note }),
                _ => Err(format!("abi/preload/calls.txt: cannot read: {line}")),
            }
        })
        .collect()
}

fn render(calls: &[Call<'_>]) -> String {
    let mut text = String::from(HEAD);
    for (class, title) in CLASSES {
        text.push_str(&format!("\n## {title}\n\n| call | |\n|---|---|\n"));
        for call in calls.iter().filter(|call| call.class == class) {
            text.push_str(&format!("| `{}` | {} |\n", call.name, call.note));
        }
    }
    text
}

const HEAD: &str = "\
# What libsovia.so does with each call

Made from `abi/preload/calls.txt` by `cargo xtask calls --write`; `cargo xtask calls` compares that list with what the library exports. Of descriptors that are not TCP
connections, each of these is the C library's own.
";

const CLASSES: [(&str, &str); 5] = [
    (
        "fast",
        "Accelerated: no system call on a connection with rings, but to sleep or to wake",
    ),
    (
        "slow",
        "Correct, at about the price of a system call or more",
    ),
    ("note", "Done by the kernel, and noted"),
    (
        "own",
        "The library's own: `sovia.h`, for [extended sockets](extended-sockets.md)",
    ),
    ("-", "Not taken, and why"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_three_fields() {
        let calls = parse("# head\n\nread | fast |\nbind | - | the kernel's\n").expect("two lines");
        assert_eq!(calls.len(), 2);
        assert_eq!(calls[1].note, "the kernel's");
        assert!(parse("read | quick | x").is_err());
        assert!(parse("read").is_err());
    }

    #[test]
    fn each_call_is_rendered_once() {
        let calls = parse("read | fast | x\nbind | - | y").expect("two lines");
        let text = render(&calls);
        assert_eq!(text.matches("`read`").count(), 1);
        assert!(text.contains("| `bind` | y |"));
    }
}
