//! Reads every source file of the workspace and holds the rules of the house on it.

mod manifest;
mod rules;
mod source;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use manifest::Manifest;
use source::Source;

/// A rule that a line breaks, and the way out.
#[derive(Debug)]
struct Violation {
    path: String,
    /// Counted from 1.
    line: usize,
    rule: &'static str,
    what: String,
    fix: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: [{}] {}\n    {}",
            self.path, self.line, self.rule, self.what, self.fix
        )
    }
}

/// The tree as it was read.
#[derive(Debug, Default)]
struct Tree {
    manifests: Vec<Manifest>,
    sources: Vec<Source>,
    /// Scripts, C, documents: path and text.
    texts: Vec<(String, String)>,
}

/// True when no rule is broken; prints each violation, and the files that are long but not too long.
pub(crate) fn run(root: &Path) -> Result<bool, String> {
    let tree = Tree::read(root)?;
    let mut violations = manifest::check(&tree.manifests);
    violations.extend(rules::check(&tree));
    violations.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    for violation in &violations {
        println!("{violation}");
    }
    for (path, lines) in rules::long_files(&tree.sources) {
        println!("note: {path} has {lines} lines without tests; is it still one thing?");
    }
    let files = tree.manifests.len() + tree.sources.len() + tree.texts.len();
    println!("tidy: {files} files, {} violations", violations.len());
    Ok(violations.is_empty())
}

impl Tree {
    fn read(root: &Path) -> Result<Self, String> {
        let mut tree = Self::default();
        let mut files = Vec::new();
        walk(root, root, &mut files)?;
        files.sort();
        for path in files {
            let full = root.join(&path);
            let extension = full
                .extension()
                .and_then(|e| e.to_str())
                .unwrap_or_default()
                .to_owned();
            if !TEXT_EXTENSIONS.contains(&extension.as_str())
                && !TEXT_FILES.contains(&path.as_str())
            {
                continue;
            }
            let text = std::fs::read_to_string(&full).map_err(|e| format!("{path}: {e}"))?;
            if extension == "rs" {
                tree.sources.push(Source::parse(&path, &text));
            } else {
                if path.ends_with("/Cargo.toml") {
                    tree.manifests.extend(Manifest::parse(&path, &text));
                }
                tree.texts.push((path, text));
            }
        }
        tree.mark_test_files();
        Ok(tree)
    }

    /// Whole files are tests by their place, or because the `mod` that names them is.
    fn mark_test_files(&mut self) {
        let mut declared: BTreeSet<String> = BTreeSet::new();
        for source in &self.sources {
            let stem = source.path.strip_suffix(".rs").unwrap_or(&source.path);
            let (parent, name) = stem.rsplit_once('/').unwrap_or(("", stem));
            let folder = if matches!(name, "lib" | "main" | "mod") {
                parent
            } else {
                stem
            };
            declared.extend(
                source
                    .test_modules
                    .iter()
                    .map(|module| format!("{folder}/{module}")),
            );
        }
        for source in &mut self.sources {
            let stem = source
                .path
                .strip_suffix(".rs")
                .unwrap_or(&source.path)
                .to_owned();
            let below = |folder: &String| {
                stem.strip_prefix(folder.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let by_place = TEST_FOLDERS
                .iter()
                .any(|folder| format!("/{}", source.path).contains(folder));
            if by_place || declared.iter().any(below) {
                source.mark_all_as_test();
            }
        }
    }
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<String>) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let kind = entry.file_type().map_err(failed)?;
        let path: PathBuf = entry.path();
        if kind.is_dir() {
            let foreign = name == "target" || name.starts_with("target-") || name.starts_with('.');
            if !foreign || HIDDEN_FOLDERS.contains(&name) {
                walk(root, &path, files)?;
            }
        } else if kind.is_file() {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            files.extend(relative.to_str().map(str::to_owned));
        }
    }
    Ok(())
}

const HIDDEN_FOLDERS: [&str; 3] = [".cargo", ".ci", ".config"];
const TEST_FOLDERS: [&str; 4] = ["/tests/", "/benches/", "/examples/", "/fuzz/"];
const TEXT_EXTENSIONS: [&str; 9] = ["rs", "toml", "c", "h", "cpp", "sh", "map", "md", "in"];
const TEXT_FILES: [&str; 3] = ["check", ".ci/run", "abi/preload/calls.txt"];
