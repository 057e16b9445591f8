//! Which `libsovia.so` is tested.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The target folder in which this test was built: `<target>/PROFILE/deps/TEST`.
///
/// # Errors
/// The test lies elsewhere.
pub fn target_folder() -> Result<PathBuf, String> {
    let test = env::current_exe().map_err(|error| format!("the path of this test: {error}"))?;
    test.ancestors()
        .nth(3)
        .map(Path::to_owned)
        .ok_or_else(|| format!("{} is not in a target folder", test.display()))
}

/// What `SOVIA_PRELOAD` names, else the newest that cargo built beside this test.
///
/// # Errors
/// There is none; the text says where it was looked for.
pub fn under_test(target: &Path) -> Result<PathBuf, String> {
    if let Some(named) = env::var_os("SOVIA_PRELOAD") {
        // Children may change their folder, and a relative path would then preload nothing.
        return fs::canonicalize(&named)
            .map_err(|error| format!("SOVIA_PRELOAD={}: {error}", named.to_string_lossy()));
    }
    let candidates =
        ["release", "debug"].map(|profile| target.join(profile).join("deps").join("libsovia.so"));
    candidates
        .iter()
        .filter_map(|path| Some((fs::metadata(path).ok()?.modified().ok()?, path)))
        .max()
        .map(|(_, path)| path.clone())
        .ok_or_else(|| {
            format!(
                "no libsovia.so: build the crate `preload`, or set SOVIA_PRELOAD; looked for {} and {}",
                candidates[0].display(),
                candidates[1].display()
            )
        })
}
