//! The dynamic symbols of a shared library against its linker version map.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A symbol and the version node it belongs to; an anonymous node has none.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Export {
    name: String,
    version: Option<String>,
}

impl std::fmt::Display for Export {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}@{version}", self.name),
            None => write!(f, "{} (no version)", self.name),
        }
    }
}

pub(crate) fn default_library(root: &Path) -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    root.join(target).join("release").join("libvipl.so")
}

pub(crate) fn default_map(root: &Path) -> PathBuf {
    root.join("abi/vipl/vipl.map")
}

/// True when both sets are equal; prints each difference.
pub(crate) fn run(library: &Path, map: &Path) -> Result<bool, String> {
    let text = std::fs::read_to_string(map).map_err(|e| format!("{}: {e}", map.display()))?;
    let wanted = parse_map(&text).map_err(|e| format!("{}: {e}", map.display()))?;
    let listing = ask("nm", &["-D", "--defined-only"], library)?;
    let found = parse_nm(&listing);

    for missing in wanted.difference(&found) {
        println!(
            "{}: {missing} is in the map and not exported: write it, or take it out",
            map.display()
        );
    }
    for surplus in found.difference(&wanted) {
        println!(
            "{}: {surplus} is exported and not in the map: make it local, or add it",
            library.display()
        );
    }
    println!(
        "abi: {} symbols exported, {} in the map",
        found.len(),
        wanted.len()
    );
    Ok(found == wanted)
}

/// What one of binutils says of a library.
pub(crate) fn ask(tool: &str, arguments: &[&str], library: &Path) -> Result<String, String> {
    let output = Command::new(tool)
        .args(arguments)
        .arg(library)
        .output()
        .map_err(|e| format!("{tool} (Debian package binutils): {e}"))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{tool} {}: {}", library.display(), reason.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn parse_nm(output: &str) -> BTreeSet<Export> {
    let mut exports = BTreeSet::new();
    for line in output.lines() {
        let mut fields = line.split_whitespace().rev();
        let (Some(symbol), Some(kind)) = (fields.next(), fields.next()) else {
            continue;
        };
        if kind == "A" {
            continue; // the version nodes themselves
        }
        let (name, version) = match symbol.split_once('@') {
            Some((name, version)) => (name, Some(version.trim_start_matches('@').to_owned())),
            None => (symbol, None),
        };
        exports.insert(Export {
            name: name.to_owned(),
            version,
        });
    }
    exports
}

/// Reads the subset of the linker's language that a map of exact names needs.
fn parse_map(text: &str) -> Result<BTreeSet<Export>, String> {
    let spaced = strip_comments(text)
        .replace('{', " { ")
        .replace('}', " } ")
        .replace(';', " ; ");
    let spaced = spaced
        .replace("global:", " global: ")
        .replace("local:", " local: ");
    let mut exports = BTreeSet::new();
    let mut node: Option<String> = None;
    let mut inside = false;
    let mut global = true;
    for word in spaced.split_whitespace() {
        match word {
            "{" => (inside, global) = (true, true),
            "}" => inside = false,
            ";" if !inside => node = None, // ends the node, behind the name of the one it inherits from
            ";" => {}
            "global:" => global = true,
            "local:" => global = false,
            name if !inside => node = Some(name.to_owned()),
            name if global && name.contains(['*', '?', '[', '"']) => {
                return Err(format!(
                    "`{name}`: name each exported symbol; patterns hide what is exported"
                ));
            }
            name if global => {
                exports.insert(Export {
                    name: name.to_owned(),
                    version: node.clone(),
                });
            }
            _ => {}
        }
    }
    if exports.is_empty() {
        Err("exports nothing".to_owned())
    } else {
        Ok(exports)
    }
}

fn strip_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        kept.push_str(before);
        kept.push(' ');
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept.lines()
        .map(|line| line.split('#').next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(name: &str, version: Option<&str>) -> Export {
        Export {
            name: name.to_owned(),
            version: version.map(str::to_owned),
        }
    }

    #[test]
    fn map_with_two_nodes() {
        let map = "VIPL_1.0 { # base\n global: VipOpenNic; VipCloseNic; /* two\nlines */ local: *;\n};\n\
                   VIPL_1.1 {global:VipNew;} VIPL_1.0;\n";
        let wanted = BTreeSet::from([
            export("VipOpenNic", Some("VIPL_1.0")),
            export("VipCloseNic", Some("VIPL_1.0")),
            export("VipNew", Some("VIPL_1.1")),
        ]);
        assert_eq!(parse_map(map), Ok(wanted));
    }

    #[test]
    fn anonymous_map() {
        assert_eq!(
            parse_map("{ global: A; local: *; };"),
            Ok(BTreeSet::from([export("A", None)]))
        );
    }

    #[test]
    fn pattern_is_refused() {
        assert!(parse_map("V { global: Vip*; local: *; };").is_err());
        assert!(parse_map("V { local: *; };").is_err());
    }

    #[test]
    fn nm_versions_and_nodes() {
        let output = "0000000000000000 A VIPL_1.0\n0000000000001139 T VipOpenNic@@VIPL_1.0\n\
                      0000000000001150 T stray\n0000000000001150 T old@VIPL_0.9\n";
        let found = BTreeSet::from([
            export("VipOpenNic", Some("VIPL_1.0")),
            export("stray", None),
            export("old", Some("VIPL_0.9")),
        ]);
        assert_eq!(parse_nm(output), found);
    }
}
