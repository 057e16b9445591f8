//! `sovia dist`: manual pages and shell completions, for who makes a package.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::Arguments;
use crate::error::{Error, Result};

mod bash;
mod fish;
mod format;
mod manual;
mod options;
mod roff;
mod synopsis;

/// Write manual pages and shell completions into a folder, as below /usr/share
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  sovia dist /tmp/share")]
pub(crate) struct Options {
    /// Made if it is not there
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// `sovia dist`.
pub(crate) fn main(options: &Options) -> Result<()> {
    write(&options.folder).map_err(|source| Error::File {
        path: options.folder.display().to_string(),
        source,
    })
}

fn write(folder: &Path) -> io::Result<()> {
    let mut command = shown();
    let pages = folder.join("man/man1");
    fs::create_dir_all(&pages)?;
    manual::write(&command, &pages)?;
    let formats = folder.join("man/man5");
    fs::create_dir_all(&formats)?;
    fs::write(formats.join("sovia.toml.5"), format::page())?;
    for (shell, place) in [
        (Shell::Bash, "bash-completion/completions"),
        (Shell::Fish, "fish/vendor_completions.d"),
        (Shell::Zsh, "zsh/vendor-completions"),
    ] {
        let place = folder.join(place);
        fs::create_dir_all(&place)?;
        clap_complete::generate_to(shell, &mut command, "sovia", &place)?;
    }
    // Debian's bash-completion loads what is called as the command is.
    let bash = folder.join("bash-completion/completions");
    let written = bash.join("sovia.bash");
    fs::write(
        bash.join("sovia"),
        bash::with_programs(&fs::read_to_string(&written)?),
    )?;
    fs::remove_file(written)?;
    let fish = folder.join("fish/vendor_completions.d/sovia.fish");
    let script = fs::read_to_string(&fish)?;
    fs::write(fish, fish::with_programs(&script))
}

/// The program without its hidden sub-commands, which are for itself: completions would offer them. Nothing can be taken away from a
/// command, so it is put together anew.
fn shown() -> Command {
    let whole = Arguments::command();
    let visible = whole.get_subcommands().filter(|inner| !inner.is_hide_set());
    Command::new("sovia")
        .version(env!("CARGO_PKG_VERSION"))
        .about(whole.get_about().cloned().unwrap_or_default())
        .after_help(whole.get_after_help().cloned().unwrap_or_default())
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommands(visible.cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(command: &Command, path: &str, visit: &mut dyn FnMut(&str, &Command)) {
        for inner in command
            .get_subcommands()
            .filter(|inner| !inner.is_hide_set())
        {
            let path = format!("{path} {}", inner.get_name());
            visit(&path, inner);
            each(inner, &path, visit);
        }
    }

    #[test]
    fn every_command_has_an_example_that_it_takes() {
        let mut without = Vec::new();
        each(&Arguments::command(), "sovia", &mut |path, command| {
            let help = command.get_after_help().map(ToString::to_string);
            let examples = help
                .as_deref()
                .and_then(|help| help.split("Examples:").nth(1));
            let lines = examples.unwrap_or_default().lines().map(str::trim);
            if lines.filter(|line| line.contains(path)).count() == 0 {
                without.push(path.to_owned());
            }
        });
        assert_eq!(without, [""; 0]);
    }

    /// Whoever shows it breaks lines where they fit.
    #[test]
    fn no_help_has_a_line_that_ends_in_a_sentence() {
        let mut broken = Vec::new();
        each(&Arguments::command(), "sovia", &mut |path, command| {
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            let prose = help.split("Examples:").next().unwrap_or_default();
            if prose
                .trim()
                .lines()
                .any(|line| line.len() > 100 && !line.ends_with(['.', ':']))
            {
                broken.push(path.to_owned());
            }
        });
        assert_eq!(broken, [""; 0]);
    }

    #[test]
    fn pages_and_completions_name_what_there_is() {
        let folder = std::env::temp_dir().join(format!("sovia-dist-{}", std::process::id()));
        write(&folder).expect("a folder of ours");
        let read = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
        assert!(read("man/man1/sovia.1").contains("\\fBsovia\\-stat\\fR(1)"));
        assert!(read("man/man5/sovia.toml.5").contains("sovia.toml \\- "));
        assert!(read("man/man1/sovia-check.1").contains("sovia check redis\\-server"));
        assert!(read("bash-completion/completions/sovia").contains("--prometheus"));
        assert!(read("zsh/vendor-completions/_sovia").contains("explain"));
        assert!(read("zsh/vendor-completions/_sovia").contains("_cmdambivalent"));
        assert!(read("fish/vendor_completions.d/sovia.fish").contains("explain"));
        let hidden = Arguments::command();
        let hidden = hidden.get_subcommands().filter(|inner| inner.is_hide_set());
        for name in hidden
            .map(Command::get_name)
            .filter(|name| name.contains('-'))
        {
            for file in [
                "bash-completion/completions/sovia",
                "zsh/vendor-completions/_sovia",
                "fish/vendor_completions.d/sovia.fish",
            ] {
                assert!(!read(file).contains(name), "{name} in {file}");
            }
        }
        let pages = fs::read_dir(folder.join("man/man1")).expect("made");
        let pages: Vec<_> = pages
            .map(|page| page.expect("an entry").file_name())
            .collect();
        let has = |name: &str| pages.iter().any(|page| page == name);
        assert!(!has("sovia-plain.1") && !has("sovia-dist.1"), "{pages:?}");
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
