use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::registry::Need;

/// What is missing, and the packages that have it.
pub(in crate::bench) fn missing(needs: &[Need]) -> Option<String> {
    let missing: Vec<_> = needs
        .iter()
        .filter(|need| find(need.program).is_none())
        .collect();
    let list = |name: fn(&Need) -> &str| {
        let mut names: Vec<_> = missing.iter().map(|need| name(need)).collect();
        names.dedup();
        names.join(" and ")
    };
    let are = if missing.len() == 1 { "is" } else { "are" };
    (!missing.is_empty()).then(|| {
        let [programs, packages] = [list(|need| need.program), list(|need| need.package)];
        format!("{programs} {are} not installed (Debian: {packages})")
    })
}

/// Looks in `PATH`, and where Debian keeps what is not for everybody.
pub(in crate::bench) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut postgres: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    postgres.sort();
    env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .chain(postgres.into_iter().rev())
        .map(|folder| folder.join(program))
        // An absolute path stays as it is, and need be no program.
        .find(|file| is_program(file) || (file.as_os_str() == program && file.exists()))
}

fn is_program(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_its_packages() {
        let need = |program, package| Need { program, package };
        assert_eq!(missing(&[need("sh", "dash")]), None);
        let said = missing(&[
            need("sh", "dash"),
            need("no-such-a", "a"),
            need("no-such-b", "b"),
        ]);
        assert_eq!(
            said.as_deref(),
            Some("no-such-a and no-such-b are not installed (Debian: a and b)")
        );
    }
}
