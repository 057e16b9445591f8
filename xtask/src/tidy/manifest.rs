//! Manifests, and the table of who may use whom.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;

/// What the rules need of one `Cargo.toml`.
#[derive(Debug)]
pub(super) struct Manifest {
    /// Of the file, relative to the workspace.
    pub(super) path: String,
    pub(super) package: String,
    pub(super) dependencies: Vec<Dependency>,
    /// Values of `path` under `[lib]`, `[[bin]]` and the like, relative to the crate.
    pub(super) target_paths: Vec<String>,
}

#[derive(Debug, Eq, PartialEq)]
pub(super) struct Dependency {
    pub(super) package: String,
    /// From `[dev-dependencies]`.
    pub(super) dev: bool,
    /// Counted from 1.
    pub(super) line: usize,
}

/// One row of the dependency table in ARCHITECTURE.md.
struct Layer {
    /// A crate's folder, or with a slash at its end the folder of several crates, none of which knows another.
    folder: &'static str,
    uses: &'static [&'static str],
}

impl Manifest {
    /// Reads the lines that say what is used; `None` for a manifest without a package.
    pub(super) fn parse(path: &str, text: &str) -> Option<Self> {
        let mut package = None;
        let mut dependencies = Vec::new();
        let mut target_paths = Vec::new();
        let mut section = String::new();
        for (line, content) in text.lines().enumerate().map(|(n, l)| (n + 1, l.trim())) {
            if content.starts_with('[') {
                section = content
                    .trim_matches(|c| "[] ".contains(c))
                    .replace(['"', '\''], "");
                if let Some((kind, Some(key))) = dependency_section(&section) {
                    dependencies.push(Dependency {
                        package: key.to_owned(),
                        dev: kind == "dev-dependencies",
                        line,
                    });
                }
                continue;
            }
            let Some((key, value)) = content.split_once('=').map(|(k, v)| (k.trim(), v.trim()))
            else {
                continue;
            };
            if content.starts_with('#') {
                continue;
            }
            match (section.as_str(), key) {
                ("package", "name") => package = quoted(value),
                ("lib" | "bin" | "test" | "bench" | "example", "path") => {
                    target_paths.extend(quoted(value))
                }
                _ => match dependency_section(&section) {
                    Some((kind, None)) => {
                        let alias = key
                            .split('.')
                            .next()
                            .unwrap_or(key)
                            .trim_matches(['"', '\'']);
                        let package = renamed(value).unwrap_or_else(|| alias.to_owned());
                        dependencies.push(Dependency {
                            package,
                            dev: kind == "dev-dependencies",
                            line,
                        });
                    }
                    Some((_, Some(_))) if key == "package" => {
                        if let (Some(last), Some(package)) =
                            (dependencies.last_mut(), quoted(value))
                        {
                            last.package = package;
                        }
                    }
                    _ => {}
                },
            }
        }
        Some(Self {
            path: path.to_owned(),
            package: package?,
            dependencies,
            target_paths,
        })
    }

    /// The crate's folder, relative to the workspace.
    pub(super) fn folder(&self) -> &str {
        self.path.strip_suffix("/Cargo.toml").unwrap_or("")
    }

    fn layer(&self) -> Option<&'static Layer> {
        LAYERS
            .iter()
            .find(|layer| match layer.folder.strip_suffix('/') {
                Some(group) => self
                    .folder()
                    .strip_prefix(group)
                    .is_some_and(|rest| rest.starts_with('/')),
                None => self.folder() == layer.folder,
            })
    }
}

/// Holds the table, and that no chain of dependencies, dev-dependencies included, leads back to where it began.
pub(super) fn check(manifests: &[Manifest]) -> Vec<Violation> {
    let ours: BTreeMap<&str, &Manifest> =
        manifests.iter().map(|m| (m.package.as_str(), m)).collect();
    let mut violations = Vec::new();
    for manifest in manifests {
        let Some(layer) = manifest.layer() else {
            violations.push(Violation {
                path: manifest.path.clone(),
                line: 1,
                rule: "layers",
                what: format!("the folder of crate `{}` is not in the dependency table", manifest.package),
                fix: "put the crate in a folder of ARCHITECTURE.md, or a row in xtask/src/tidy/manifest.rs and there",
            });
            continue;
        };
        for dependency in &manifest.dependencies {
            let Some(used) = ours.get(dependency.package.as_str()) else {
                continue;
            };
            let allowed = used.layer().is_some_and(|l| layer.uses.contains(&l.folder));
            let (what, fix) = if !dependency.dev && !allowed {
                (
                    format!(
                        "`{}` uses `{}`, which does not stand above it",
                        manifest.package, used.package
                    ),
                    "move what you need to a crate that both may use; the table is in ARCHITECTURE.md",
                )
            } else if dependency.dev && reaches(&ours, &used.package, &manifest.package) {
                (
                    format!(
                        "the tests of `{}` use `{}`, which is built on it",
                        manifest.package, used.package
                    ),
                    "move the test to the crate that stands lower, or to testing/",
                )
            } else {
                continue;
            };
            violations.push(Violation {
                path: manifest.path.clone(),
                line: dependency.line,
                rule: "layers",
                what,
                fix,
            });
        }
    }
    violations
}

/// Whether `from` depends on `to`, directly or not.
fn reaches(ours: &BTreeMap<&str, &Manifest>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(package) = open.pop() {
        if package == to {
            return true;
        }
        if seen.insert(package) {
            let used = ours.get(package).into_iter().flat_map(|m| &m.dependencies);
            open.extend(
                used.map(|d| d.package.as_str())
                    .filter(|d| ours.contains_key(d)),
            );
        }
    }
    false
}

/// `dependencies`, `dev-dependencies.x` or `target.….build-dependencies`: the kind, and the crate if it is in the name.
fn dependency_section(section: &str) -> Option<(&'static str, Option<&str>)> {
    KINDS.iter().find_map(|kind| {
        let at = section.find(kind)?;
        let before = &section[..at];
        let of_target = before.starts_with("target.") && before.ends_with('.');
        if !(before.is_empty() || of_target) {
            return None;
        }
        match &section[at + kind.len()..] {
            "" => Some((*kind, None)),
            rest => rest.strip_prefix('.').map(|key| (*kind, Some(key))),
        }
    })
}

fn quoted(value: &str) -> Option<String> {
    let mut parts = value.split('"');
    parts.next()?;
    parts.next().map(str::to_owned)
}

fn renamed(value: &str) -> Option<String> {
    let (_, rest) = value.split_once("package")?;
    quoted(rest.trim_start().strip_prefix('=')?)
}

const KINDS: [&str; 3] = ["dev-dependencies", "build-dependencies", "dependencies"];

const LAYERS: &[Layer] = &[
    Layer {
        folder: "proto",
        uses: &[],
    },
    Layer {
        folder: "sys",
        uses: &[],
    },
    Layer {
        folder: "via",
        uses: &["proto", "sys"],
    },
    Layer {
        folder: "providers/",
        uses: &["proto", "sys", "via"],
    },
    Layer {
        folder: "sockets",
        uses: &["proto", "sys", "via"],
    },
    Layer {
        folder: "abi/",
        uses: &["proto", "sys", "via", "providers/", "sockets"],
    },
    Layer {
        folder: "cli",
        uses: &["proto", "sys", "via", "providers/", "sockets", "abi/"],
    },
    Layer {
        folder: "testing/conformance/fuzz",
        uses: &["testing/"],
    },
    Layer {
        folder: "testing/lockstep",
        uses: &["abi/", "testing/"],
    },
    Layer {
        folder: "testing/",
        uses: &[
            "proto",
            "sys",
            "via",
            "providers/",
            "sockets",
            "abi/",
            "cli",
        ],
    },
    Layer {
        folder: "xtask",
        uses: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(folder: &str, dependencies: &str) -> Manifest {
        let name = folder.rsplit('/').next().unwrap_or(folder);
        let text = format!("[package]\nname = \"{name}\"\n\n{dependencies}\n");
        Manifest::parse(&format!("{folder}/Cargo.toml"), &text).expect("a package")
    }

    fn violations(manifests: &[Manifest]) -> Vec<String> {
        check(manifests)
            .iter()
            .map(|v| format!("{}:{}", v.path, v.line))
            .collect()
    }

    fn house(extra: &[(&str, &str)]) -> Vec<Manifest> {
        let mut crates = BTreeMap::from([
            ("proto", ""),
            ("sys", "[dependencies]\nlibc.workspace = true"),
            (
                "via",
                "[dependencies]\nproto.workspace = true\nsys = { path = \"../sys\" }",
            ),
            ("providers/shm", "[dependencies]\nvia.workspace = true"),
            ("providers/sim", "[dependencies]\nvia.workspace = true"),
            (
                "abi/vipl",
                "[dependencies]\nshm.workspace = true\nsim.workspace = true",
            ),
        ]);
        crates.extend(extra.iter().copied());
        crates
            .into_iter()
            .map(|(folder, dependencies)| manifest(folder, dependencies))
            .collect()
    }

    #[test]
    fn the_house_stands() {
        assert_eq!(violations(&house(&[])), Vec::<String>::new());
    }

    #[test]
    fn no_provider_knows_another() {
        let crates = house(&[(
            "providers/shm",
            "[dependencies]\nvia.workspace = true\nsim.workspace = true",
        )]);
        assert_eq!(violations(&crates), ["providers/shm/Cargo.toml:6"]);
    }

    #[test]
    fn proto_and_sys_use_none_of_ours() {
        let crates = house(&[
            ("proto", "[dependencies.sys]\npath = \"../sys\""),
            ("sys", "[build-dependencies]\nproto = \"0\""),
        ]);
        assert_eq!(
            violations(&crates),
            ["proto/Cargo.toml:4", "sys/Cargo.toml:5"]
        );
    }

    #[test]
    fn a_name_does_not_hide_a_crate() {
        let inline =
            "[target.'cfg(unix)'.dependencies]\nother = { package = \"shm\", version = \"0\" }";
        let table = "[dependencies.other]\npackage = \"shm\"";
        assert_eq!(violations(&house(&[("via", inline)])), ["via/Cargo.toml:5"]);
        assert_eq!(violations(&house(&[("via", table)])), ["via/Cargo.toml:4"]);
    }

    #[test]
    fn tests_may_look_sideways_but_not_down() {
        let sideways = house(&[(
            "providers/shm",
            "[dependencies]\nvia.workspace = true\n[dev-dependencies]\nsim.workspace = true",
        )]);
        assert_eq!(violations(&sideways), Vec::<String>::new());
        let down = house(&[(
            "via",
            "[dependencies]\nsys.workspace = true\n[dev-dependencies]\nsim.workspace = true",
        )]);
        assert_eq!(violations(&down), ["via/Cargo.toml:7"]);
    }

    #[test]
    fn a_crate_needs_a_place() {
        assert_eq!(
            violations(&house(&[("tools/bench", "")])),
            ["tools/bench/Cargo.toml:1"]
        );
    }

    #[test]
    fn target_paths_are_read() {
        let parsed = manifest("cli", "[[bin]]\nname = \"x\"\npath = \"src/other.rs\"");
        assert_eq!(parsed.target_paths, ["src/other.rs"]);
    }
}
