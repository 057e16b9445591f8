//! A Debian package of the release build: the program, the libraries, what is needed to build against them, manual pages and completions.
//!
//! Needs `dpkg-deb`, which every Debian has, `gzip`, `nm` and `cc`. There are no scripts of the maintainer in it: nothing runs at
//! installation but Debian's own `ldconfig`, so nothing can be left when it is removed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Of the build in the folder of `profile`: `release`, or `dev` to try this out.
pub(crate) fn run(root: &Path, profile: &str) -> Result<bool, String> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let folder = if profile == "dev" { "debug" } else { profile };
    let release = root.join(&target).join(folder);
    let version = version(root)?;
    let architecture = said(Command::new("dpkg").arg("--print-architecture"))?;
    let name = format!("sovia_{version}_{architecture}");
    let tree = root.join(&target).join("deb").join(&name);
    if tree.exists() {
        fs::remove_dir_all(&tree).map_err(at(&tree))?;
    }
    let tree = Tree(tree);
    programs(&tree, &release)?;
    link(root, &root.join(&target), profile)?;
    development(&tree, root, &release, &version)?;
    strip(&tree)?;
    documents(&tree, root, &release)?;
    control(&tree, &version, &architecture)?;
    open_to_all(&tree.0)?;
    let package = tree.0.with_file_name(format!("{name}.deb"));
    said(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zxz", "--build"])
            .arg(&tree.0)
            .arg(&package),
    )?;
    println!("{}", package.display());
    Ok(true)
}

fn programs(tree: &Tree, release: &Path) -> Result<(), String> {
    let built = |name: &str| newest(release, name);
    tree.copy(&built("sovia")?, "usr/bin/sovia", 0o755)?;
    for name in ["libsovia.so", "libsov.so"] {
        tree.copy(&built(name)?, &format!("usr/lib/{name}"), 0o644)?;
    }
    Ok(())
}

/// Line tables are for who builds it.
fn strip(tree: &Tree) -> Result<(), String> {
    for name in BINARIES {
        let path = tree.0.join("usr").join(name);
        said(Command::new("strip").arg("--strip-unneeded").arg(path))?;
    }
    Ok(())
}

/// Makes libvipl.so of the static library.
fn link(root: &Path, target: &Path, profile: &str) -> Result<(), String> {
    let mut link = Command::new("sh");
    link.arg(root.join("abi/vipl/link.sh"))
        .args(["--prefix", "/usr", "--profile", profile])
        .env("CARGO_TARGET_DIR", target);
    said(&mut link).map(drop)
}

fn development(tree: &Tree, root: &Path, release: &Path, version: &str) -> Result<(), String> {
    tree.copy(
        &release.join("libvipl.so.1.0"),
        "usr/lib/libvipl.so.1.0",
        0o644,
    )?;
    tree.link("libvipl.so.1.0", "usr/lib/libvipl.so.1")?;
    tree.link("libvipl.so.1", "usr/lib/libvipl.so")?;
    for (header, crate_) in [("vipl.h", "vipl"), ("sovia.h", "preload"), ("sov.h", "sov")] {
        let from = root.join("abi").join(crate_).join("include").join(header);
        tree.copy(&from, &format!("usr/include/{header}"), 0o644)?;
    }
    for (name, crate_) in [("vipl", "vipl"), ("sovia", "preload"), ("sov", "sov")] {
        let from = root.join("abi").join(crate_).join(format!("{name}.pc.in"));
        let text = fs::read_to_string(&from).map_err(at(&from))?;
        let text = text
            .replace("@PREFIX@", "/usr")
            .replace("@LIBDIR@", "/usr/lib")
            .replace("@VERSION@", version);
        tree.write(&format!("usr/lib/pkgconfig/{name}.pc"), &text)?;
    }
    Ok(())
}

fn documents(tree: &Tree, root: &Path, release: &Path) -> Result<(), String> {
    let share = tree.0.join("usr/share");
    said(
        Command::new(newest(release, "sovia")?)
            .arg("dist")
            .arg(&share),
    )?;
    let folder = "usr/share/doc/sovia";
    for (from, to) in [
        ("README.md", "README.md"),
        ("ARCHITECTURE.md", "ARCHITECTURE.md"),
        ("CHANGELOG.md", "changelog"),
        ("SECURITY.md", "SECURITY.md"),
        ("cli/src/config/example.toml", "examples/sovia.toml"),
    ] {
        tree.copy(&root.join(from), &format!("{folder}/{to}"), 0o644)?;
    }
    // All of them, where `--help` and they themselves say that they are.
    for path in files_below(&root.join("docs"))? {
        let inside = path.strip_prefix(root).unwrap_or(&path).display();
        tree.copy(&path, &format!("{folder}/{inside}"), 0o644)?;
    }
    for crate_ in ["preload", "vipl"] {
        let samples = root.join("abi").join(crate_).join("samples");
        for path in files_below(&samples)? {
            let inside = path.strip_prefix(&samples).unwrap_or(&path).display();
            tree.copy(
                &path,
                &format!("{folder}/examples/{crate_}/{inside}"),
                0o644,
            )?;
        }
    }
    let mut copyright = "sovia is licensed under MIT or Apache-2.0, as you like.\n".to_owned();
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let path = root.join(licence);
        copyright += &format!("\n{}", fs::read_to_string(&path).map_err(at(&path))?);
    }
    tree.write(&format!("{folder}/copyright"), &copyright)?;
    let mut pages = files_below(&share.join("man"))?;
    pages.push(tree.0.join(folder).join("changelog"));
    said(Command::new("gzip").arg("-9n").args(&pages)).map(drop)
}

fn control(tree: &Tree, version: &str, architecture: &str) -> Result<(), String> {
    let mut kib = 0;
    let mut sums = String::new();
    for path in files_below(&tree.0)? {
        if path.is_symlink() {
            continue;
        }
        kib += fs::metadata(&path).map_err(at(&path))?.len().div_ceil(1024);
        let inside = path.strip_prefix(&tree.0).unwrap_or(&path);
        let sum = said(Command::new("md5sum").arg(inside).current_dir(&tree.0))?;
        sums += &format!("{sum}\n");
    }
    let glibc = needed_glibc(tree)?;
    tree.write("DEBIAN/md5sums", &sums)?;
    tree.write("DEBIAN/triggers", "activate-noawait ldconfig\n")?;
    tree.write(
        "DEBIAN/control",
        &format!(
            "Package: sovia
Version: {version}
Architecture: {architecture}
Maintainer: the authors of sovia <sovia@localhost>
Installed-Size: {kib}
Depends: libc6 (>= {glibc}), libgcc-s1
Section: net
Priority: optional
Description: user-level sockets over Virtual Interfaces
 Unmodified network programs, several times faster on one host: sovia run
 moves the bytes of their TCP connections through shared memory that only
 the two ends have, without a kernel module, a daemon or a configuration.
 .
 Has the libraries libsovia, libsov and libvipl, and what is needed to
 build programs against them.
"
        ),
    )
}

/// The newest version of glibc that a symbol is wanted of.
fn needed_glibc(tree: &Tree) -> Result<String, String> {
    let mut newest = (0, 0);
    for name in BINARIES {
        let symbols = said(
            Command::new("nm")
                .args(["-D", "--undefined-only"])
                .arg(tree.0.join("usr").join(name)),
        )?;
        let versions = symbols
            .lines()
            .filter_map(|line| line.split_once("@GLIBC_"));
        for (_, version) in versions {
            let mut numbers = version
                .split('.')
                .map_while(|number| number.trim().parse::<u32>().ok());
            let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            newest = newest.max(version);
        }
    }
    Ok(format!("{}.{}", newest.0, newest.1))
}

/// Everybody may read what a package has, whatever the umask of who makes it.
fn open_to_all(folder: &Path) -> Result<(), String> {
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    set(folder, 0o755).map_err(at(folder))?;
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        let about = fs::symlink_metadata(&path).map_err(at(&path))?;
        if about.is_dir() {
            open_to_all(&path)?;
        } else if about.is_file() {
            let mode = about.permissions().mode() | 0o444;
            let runs = if mode & 0o100 == 0 { 0 } else { 0o111 };
            set(&path, mode | runs).map_err(at(&path))?;
        }
    }
    Ok(())
}

/// What is to be installed.
struct Tree(PathBuf);

impl Tree {
    fn copy(&self, from: &Path, to: &str, mode: u32) -> Result<(), String> {
        let to = self.place(to)?;
        fs::copy(from, &to).map_err(at(from))?;
        fs::set_permissions(&to, fs::Permissions::from_mode(mode)).map_err(at(&to))
    }

    fn write(&self, to: &str, text: &str) -> Result<(), String> {
        let to = self.place(to)?;
        fs::write(&to, text).map_err(at(&to))?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o644)).map_err(at(&to))
    }

    fn link(&self, target: &str, to: &str) -> Result<(), String> {
        let to = self.place(to)?;
        symlink(target, &to).map_err(at(&to))
    }

    fn place(&self, to: &str) -> Result<PathBuf, String> {
        let to = self.0.join(to);
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(at(folder))?;
        }
        Ok(to)
    }
}

/// What cargo built, whether it was asked for or only needed: then it is in `deps`.
pub(crate) fn newest(release: &Path, name: &str) -> Result<PathBuf, String> {
    [release.join(name), release.join("deps").join(name)]
        .into_iter()
        .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
        .max()
        .map(|(_, path)| path)
        .ok_or_else(|| {
            format!(
                "{}: cargo build --release --workspace makes {name}",
                release.display()
            )
        })
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(at(&folder))? {
            let path = entry.map_err(at(&folder))?.path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn version(root: &Path) -> Result<String, String> {
    let path = root.join("Cargo.toml");
    let text = fs::read_to_string(&path).map_err(at(&path))?;
    let package = text.split("[workspace.package]").nth(1);
    package
        .and_then(|package| package.split("version = \"").nth(1))
        .and_then(|rest| rest.split('"').next())
        .map(str::to_owned)
        .ok_or_else(|| format!("{}: no version", path.display()))
}

/// What a command writes, without the end of the last line.
fn said(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("{name}: {}: {errors}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned())
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

/// Below `usr`.
const BINARIES: [&str; 4] = [
    "bin/sovia",
    "lib/libsov.so",
    "lib/libsovia.so",
    "lib/libvipl.so.1.0",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_for_everybody() {
        let folder = std::env::temp_dir().join(format!("xtask-deb-{}", std::process::id()));
        let inner = folder.join("usr/bin");
        fs::create_dir_all(&inner).expect("a folder");
        let mode_of = |path: &Path| {
            let about = fs::metadata(path).expect("it is there");
            about.permissions().mode() & 0o7777
        };
        let closed = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
        };
        let [page, program] = ["page", "program"].map(|name| inner.join(name));
        for (path, mode) in [(&page, 0o600), (&program, 0o700)] {
            fs::write(path, "").expect("a file");
            closed(path, mode);
        }
        closed(&inner, 0o700);
        open_to_all(&folder).expect("it is ours");
        let modes = [&folder, &inner, &page, &program].map(|path| mode_of(path));
        assert_eq!(modes, [0o755, 0o755, 0o644, 0o755]);
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
