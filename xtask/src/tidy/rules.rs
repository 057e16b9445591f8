//! The rules on source files. Each is a function from the tree to what breaks it.

use super::manifest::Manifest;
use super::source::Source;
use super::{Tree, Violation};

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    violations.extend(
        tree.manifests
            .iter()
            .flat_map(|manifest| crate_roots(manifest, &tree.sources)),
    );
    let taken = taken_calls(tree);
    for source in &tree.sources {
        violations.extend(unsafe_code(source));
        violations.extend(paths(source));
        violations.extend(own_calls(source, &taken));
        violations.extend(cancellation(source));
        violations.extend(module_file(source));
        violations.extend(length(source));
        violations.extend(unfinished_code(source));
        violations.extend(sleeping_tests(source));
        violations.extend(ignored_tests(source));
        violations.extend(
            source
                .raw
                .iter()
                .enumerate()
                .filter_map(|(n, line)| outside(&source.path, n, line)),
        );
    }
    for (path, text) in &tree.texts {
        violations.extend(
            text.lines()
                .enumerate()
                .filter_map(|(n, line)| outside(path, n, line)),
        );
        if !path.ends_with(".md") {
            violations.extend(
                text.lines()
                    .enumerate()
                    .filter_map(|(n, line)| unfinished_word(path, n, line)),
            );
        }
    }
    violations.extend(stale_exceptions(&tree.sources));
    violations
}

/// Files between the size that is discussed and the size that is refused, with their lines.
pub(super) fn long_files(sources: &[Source]) -> Vec<(&str, usize)> {
    let sized = sources
        .iter()
        .map(|s| (s.path.as_str(), lines_without_tests(s)));
    sized
        .filter(|(_, lines)| (LINES_DISCUSSED + 1..=LINES_MAX).contains(lines))
        .collect()
}

fn violation(
    source: &Source,
    line: usize,
    rule: &'static str,
    what: String,
    fix: &'static str,
) -> Violation {
    Violation {
        path: source.path.clone(),
        line: line + 1,
        rule,
        what,
        fix,
    }
}

fn crate_roots(manifest: &Manifest, sources: &[Source]) -> Vec<Violation> {
    let folder = manifest.folder();
    if within(folder, &UNSAFE_CRATES) {
        return Vec::new();
    }
    let is_root = |source: &&Source| {
        let Some(inside) = source
            .path
            .strip_prefix(folder)
            .and_then(|p| p.strip_prefix('/'))
        else {
            return false;
        };
        let binary = inside
            .strip_prefix("src/bin/")
            .is_some_and(|b| !b.contains('/') || b.ends_with("/main.rs"));
        let listed = manifest.target_paths.iter().any(|p| p == inside);
        binary || listed || matches!(inside, "src/lib.rs" | "src/main.rs" | "build.rs")
    };
    let forbids = |source: &&Source| {
        source
            .code
            .iter()
            .any(|l| l.contains("#![forbid(") && l.contains("unsafe_code"))
    };
    let excepted = |source: &&Source| exception(&source.path).is_some();
    let roots = sources
        .iter()
        .filter(is_root)
        .filter(|s| !forbids(s) && !excepted(s));
    roots
        .map(|root| {
            let what = format!(
                "this root of crate `{}` does not forbid unsafe code",
                manifest.package
            );
            violation(
                root,
                0,
                "unsafe",
                what,
                "write #![forbid(unsafe_code)] below its documentation",
            )
        })
        .collect()
}

/// Tests, examples and benches need not say `forbid`; that they hold no unsafe code is seen here.
fn unsafe_code(source: &Source) -> Vec<Violation> {
    if within(&source.path, &UNSAFE_CRATES) || exception(&source.path).is_some() {
        return Vec::new();
    }
    let used = source.tokens.iter().filter(|t| t.text == "unsafe");
    let fix = "give sys a safe function that does it, or list the target with a reason in xtask/src/tidy/rules.rs";
    used.map(|t| {
        violation(
            source,
            t.line,
            "unsafe",
            "unsafe code outside sys, abi and verbs".to_owned(),
            fix,
        )
    })
    .collect()
}

fn stale_exceptions(sources: &[Source]) -> Vec<Violation> {
    let needed = |target: &str| {
        let mut covered = sources
            .iter()
            .filter(|s| exception(&s.path) == Some(target));
        covered.any(|s| s.tokens.iter().any(|t| t.text == "unsafe"))
    };
    let stale = UNSAFE_TARGETS.iter().filter(|(target, _)| !needed(target));
    stale
        .map(|(target, reason)| Violation {
            path: (*target).to_owned(),
            line: 1,
            rule: "unsafe",
            what: format!("is excepted ({reason}) and holds no unsafe code"),
            fix: "take it out of the list in xtask/src/tidy/rules.rs",
        })
        .collect()
}

/// The excepted target that a file belongs to: its root, or a module below it.
fn exception(path: &str) -> Option<&'static str> {
    let target_of = |root: &str| {
        let folder = root
            .strip_suffix("/main.rs")
            .or_else(|| root.strip_suffix(".rs"))
            .unwrap_or(root);
        path == root
            || path
                .strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with('/'))
    };
    UNSAFE_TARGETS
        .iter()
        .map(|(root, _)| *root)
        .find(|root| target_of(root))
}

fn within(path: &str, folders: &[&str]) -> bool {
    folders.iter().any(|f| {
        path.strip_prefix(f)
            .is_some_and(|rest| rest.is_empty() || f.ends_with('/') || rest.starts_with('/'))
    })
}

fn paths(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for path in source.paths() {
        let written = path.segments.join("::");
        let calls_libc = path.starts_with(&["libc"]) && (path.segments.len() > 1 || path.imported);
        if calls_libc && !within(&source.path, &LIBC_FOLDERS) {
            let fix = "let sys make the call, with types";
            violations.push(violation(
                source,
                path.line,
                "libc",
                format!("`{written}` outside sys, abi and testing"),
                fix,
            ));
        }
        let atomic = path.starts_with(&["std", "sync", "atomic"])
            || path.starts_with(&["core", "sync", "atomic"]);
        let modelled =
            within(&source.path, &MODELLED_FOLDERS) && !within(&source.path, &ATOMIC_HOME);
        if atomic && modelled && !source.is_test(path.line) {
            let fix = "take it from sys::sync, which loom can replace";
            violations.push(violation(
                source,
                path.line,
                "atomics",
                format!("`{written}` is hidden from loom"),
                fix,
            ));
        }
        let impure = IMPURE.iter().any(|banned| path.contains(banned));
        if impure && within(&source.path, &["proto/"]) {
            let fix = "take time, randomness and bytes as arguments; the provider does the I/O";
            violations.push(violation(
                source,
                path.line,
                "sans-io",
                format!("`{written}` in proto"),
                fix,
            ));
        }
        let begins = BEGINS_THREAD.iter().any(|begins| path.contains(begins));
        let ours = within(&source.path, &QUIET_FOLDERS) && !source.is_test(path.line);
        if begins && ours {
            let fix =
                "begin it with sys::quiet::spawn: a program's signals are not for our threads";
            violations.push(violation(
                source,
                path.line,
                "signals",
                format!("`{written}`"),
                fix,
            ));
        }
    }
    violations
}

/// The C library's calls that `libsovia.so` stands in front of.
fn taken_calls(tree: &Tree) -> Vec<&str> {
    let list = tree.texts.iter().find(|(path, _)| path == CALLS_LIST);
    let lines = list.map_or("", |(_, text)| text).lines();
    let rows = lines.filter_map(|line| line.split_once(" | "));
    let taken = rows.filter(|(name, rest)| !name.starts_with('#') && !rest.starts_with('-'));
    taken.map(|(name, _)| name).collect()
}

/// Linked into `libsovia.so`, `sys` must not call what that takes: it would take its own connections for the program's.
fn own_calls(source: &Source, taken: &[&str]) -> Vec<Violation> {
    if !within(&source.path, &["sys/src/"]) {
        return Vec::new();
    }
    let called = source.paths().into_iter().filter(|path| {
        let name = path.segments.get(1).map(String::as_str);
        let is_taken = name.is_some_and(|name| name != "syscall" && taken.contains(&name));
        path.starts_with(&["libc"]) && is_taken && !source.is_test(path.line)
    });
    let fix = "make the system call, by rustix: libsovia.so would take this one for the program's";
    called
        .map(|path| {
            let what = format!("`{}` in sys", path.segments.join("::"));
            violation(source, path.line, "taken call", what, fix)
        })
        .collect()
}

/// A thread that is cancelled in a call is unwound through ours, which the compiler has abort the program where a function says that nothing unwinds through it.
fn cancellation(source: &Source) -> Vec<Violation> {
    if !within(&source.path, &["abi/preload/src/"]) {
        return Vec::new();
    }
    // Not a pointer's type.
    let defines = |line: &str| line.contains("unsafe extern \"C\" fn ");
    let lines = source.raw.iter().enumerate();
    let fix = "make it extern \"C-unwind\"";
    lines
        .filter(|(n, line)| defines(line) && !source.is_test(*n))
        .map(|(n, _)| {
            let what = "a function that no cancelled thread leaves".to_owned();
            violation(source, n, "cancellation", what, fix)
        })
        .collect()
}

fn module_file(source: &Source) -> Option<Violation> {
    let is_module_file = source.path.ends_with("/mod.rs");
    let fix = "name it foo.rs beside the folder foo/";
    is_module_file.then(|| violation(source, 0, "mod.rs", "a file named mod.rs".to_owned(), fix))
}

fn length(source: &Source) -> Option<Violation> {
    let lines = lines_without_tests(source);
    let fix = "find the two things in it, and give each a file";
    let what = || format!("{lines} lines without tests, at most {LINES_MAX}");
    (lines > LINES_MAX).then(|| violation(source, LINES_MAX, "length", what(), fix))
}

fn lines_without_tests(source: &Source) -> usize {
    source.test.iter().filter(|test| !**test).count()
}

fn unfinished_code(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (n, (code, comment)) in source.code.iter().zip(&source.comment).enumerate() {
        violations.extend(unfinished_word(&source.path, n, code));
        violations.extend(unfinished_word(&source.path, n, comment));
    }
    for pair in source.tokens.windows(2).filter(|pair| pair[1].text == "!") {
        if matches!(pair[0].text.as_str(), "todo" | "unimplemented") {
            let what = format!("`{}!` is reached by someone", pair[0].text);
            violations.push(violation(source, pair[0].line, "unfinished", what, FINISH));
        }
    }
    violations
}

fn unfinished_word(path: &str, line: usize, text: &str) -> Option<Violation> {
    let word = UNFINISHED_WORDS.iter().find(|word| {
        let name = |c: Option<char>| c.is_some_and(|c| c == '_' || c.is_alphanumeric());
        let mut places = text.match_indices(**word);
        places.any(|(at, _)| {
            !name(text[..at].chars().next_back()) && !name(text[at + word.len()..].chars().next())
        })
    })?;
    let what = format!("the word {word}");
    Some(Violation {
        path: path.to_owned(),
        line: line + 1,
        rule: "unfinished",
        what,
        fix: FINISH,
    })
}

fn sleeping_tests(source: &Source) -> Vec<Violation> {
    let always = within(&source.path, &["testing/"]);
    let noted = |line: usize| {
        source.comment[line]
            .split_once(SLEEP_NOTE)
            .is_some_and(|(_, why)| !why.trim().is_empty())
    };
    let unexplained = source.paths().into_iter().filter(|path| {
        let sleeps = path.contains(&["thread", "sleep"]) && !path.imported;
        let explained = noted(path.line) || path.line.checked_sub(1).is_some_and(noted);
        sleeps && (always || source.is_test(path.line)) && !explained
    });
    let fix = "wait for the thing itself; where time is the thing, say `// tidy: sleep because REASON` on this line or above";
    unexplained
        .map(|p| violation(source, p.line, "sleep", "a test sleeps".to_owned(), fix))
        .collect()
}

fn ignored_tests(source: &Source) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (n, tokens) in source.tokens.windows(2).enumerate() {
        let [word, next] = tokens else { continue };
        let before = n
            .checked_sub(1)
            .and_then(|i| source.tokens.get(i))
            .map_or("", |t| t.text.as_str());
        let attribute = word.text == "ignore"
            && matches!(before, "[" | ",")
            && matches!(next.text.as_str(), "]" | "=" | ")");
        let reason = source
            .raw
            .get(word.line)
            .is_some_and(|l| l.split('"').nth(1).is_some_and(|r| !r.trim().is_empty()));
        if attribute && (next.text != "=" || !reason) {
            let fix = "write #[ignore = \"REASON\"], or let it run";
            violations.push(violation(
                source,
                word.line,
                "ignore",
                "a test is ignored without a reason".to_owned(),
                fix,
            ));
        }
    }
    violations
}

/// The repository stands alone: nothing in it may point to a folder beside it.
fn outside(path: &str, line: usize, text: &str) -> Option<Violation> {
    let what = "points to a folder outside the repository".to_owned();
    let fix = "cite the paper or the specification by name";
    text.contains(BESIDE).then(|| Violation {
        path: path.to_owned(),
        line: line + 1,
        rule: "alone",
        what,
        fix,
    })
}

const LINES_DISCUSSED: usize = 500;
const LINES_MAX: usize = 1000;

/// Crates whose purpose needs unsafe code; clippy sees to it that each block is argued.
const UNSAFE_CRATES: [&str; 3] = ["sys", "abi/", "providers/verbs"];

/// Targets of other crates that need it, by the path of their root, and why.
const UNSAFE_TARGETS: &[(&str, &str)] = &[];

const CALLS_LIST: &str = "abi/preload/calls.txt";
const LIBC_FOLDERS: [&str; 3] = ["sys/", "abi/", "testing/"];

/// Where two processes or threads meet, so that loom must see every atomic.
const MODELLED_FOLDERS: [&str; 4] = ["sys/", "via/", "providers/", "abi/"];
const ATOMIC_HOME: [&str; 2] = ["sys/src/sync.rs", "sys/src/sync/"];

/// What runs inside somebody's program; the rest are programs, tests, and C faces without threads.
const QUIET_FOLDERS: [&str; 4] = ["via/", "providers/shm/", "providers/iwarp/", "sockets/"];
const BEGINS_THREAD: [&[&str]; 2] = [&["thread", "Builder"], &["thread", "spawn"]];

const IMPURE: [&[&str]; 5] = [
    &["std", "net"],
    &["std", "fs"],
    &["std", "thread"],
    &["Instant", "now"],
    &["SystemTime"],
];

const UNFINISHED_WORDS: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];
const FINISH: &str = "finish it, or say what is missing in docs/limitations.md";
const SLEEP_NOTE: &str = "tidy: sleep because";
const BESIDE: &str = concat!("../", "shared");

#[cfg(test)]
mod tests;
