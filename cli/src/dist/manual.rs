//! Manual pages of the commands, made of what `--help` is made of.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap::builder::StyledStr;

use super::{format, options, roff, synopsis};

/// A page for the command and one for each below it; `sovia-run.1`.
pub(super) fn write(command: &Command, folder: &Path) -> io::Result<()> {
    let mut command = command.clone().disable_help_subcommand(true);
    command.build();
    write_with(&command, folder)
}

fn write_with(command: &Command, folder: &Path) -> io::Result<()> {
    for inner in visible(command) {
        write_with(inner, folder)?;
    }
    let file = folder.join(format!("{}.1", name(command)));
    fs::write(file, page(command))
}

fn page(command: &Command) -> String {
    let about = text_of(command.get_about());
    let mut page = roff::head(name(command), 1);
    page += &roff::section("Name");
    page += &format!("{} \\- {}\n", roff_name(command), roff::text(&about));
    page += &synopsis::section(command);
    page += &roff::section("Description");
    let told = match command.get_long_about() {
        Some(long) => long.to_string(),
        None => about,
    };
    let told: Vec<_> = told.split("\n\n").map(roff::text).collect();
    page += &(told.join("\n.PP\n") + "\n");
    page += &options::section(command);
    if visible(command).next().is_some() {
        page += &roff::section("Commands");
        for inner in visible(command) {
            let about = roff::text(&text_of(inner.get_about()));
            page += &format!(".TP\n\\fB{}\\fR(1)\n{about}\n", roff_name(inner));
        }
    }
    page += &sections(&text_of(command.get_after_help()));
    if configurable(command) {
        page += &roff::section("Files");
        for (file, what) in format::FILES {
            page += &format!(".TP\n{}\n{what}\n", roff::italic(file));
        }
    }
    page + &see_also(command)
}

fn text_of(text: Option<&StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

/// Whether the configuration has a say in it.
fn configurable(command: &Command) -> bool {
    let mut arguments = command.get_arguments();
    arguments.any(|argument| argument.get_long() == Some("config"))
}

/// The commands below it that are not for itself.
pub(super) fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
}

fn name(command: &Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}

fn roff_name(command: &Command) -> String {
    name(command).replace('-', "\\-")
}

/// What stands below the options in `--help`, by what it tells of.
fn sections(help: &str) -> String {
    let (told, examples) = help.split_once("Examples:").unwrap_or((help, ""));
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = told
        .replace("docs/configuration.md", "`sovia.toml`(5)")
        .replace("docs/", DOCUMENTS);
    let (mut notes, mut status, mut environment) = (Vec::new(), Vec::new(), String::new());
    for sentence in told.split_inclusive(". ").map(str::trim) {
        match sentence {
            "" => {}
            // Below a title that says so.
            _ if sentence.contains("xit status") => {
                status.push(sentence.strip_prefix("Exit status: ").unwrap_or(sentence));
            }
            // `VARIABLE says what`, and another.
            _ if sentence.starts_with("SOVIA_") => {
                let sentence = sentence.trim_end_matches('.');
                for (variable, says) in sentence
                    .split("; ")
                    .filter_map(|clause| clause.split_once(' '))
                {
                    let says = roff::text(says);
                    environment += &format!(".TP\n{}\n{says}\n", roff::bold(variable));
                }
            }
            _ => notes.push(sentence),
        }
    }
    if status.is_empty() {
        status.push(STATUS);
    }
    let mut sections = String::new();
    if !notes.is_empty() {
        sections += &roff::section("Notes");
        sections += &(roff::text(&notes.join(" ")) + "\n");
    }
    sections += &roff::section("Exit status");
    sections += &(roff::text(&status.join(" ")) + "\n");
    if !environment.is_empty() {
        sections += &(roff::section("Environment") + &environment);
    }
    let examples = examples.lines().map(str::trim);
    let mut examples = examples.filter(|line| !line.is_empty()).peekable();
    if examples.peek().is_some() {
        sections += &roff::section("Examples");
        sections += &roff::example(examples);
    }
    sections
}

/// Its own commands are named where they are told of.
fn see_also(command: &Command) -> String {
    let mut pages: Vec<String> = Vec::new();
    if name(command) != "sovia" {
        let above = roff_name(command);
        let above = above.rsplit_once("\\-").map_or("sovia", |(above, _)| above);
        // sovia-bench-paper-sovia is below sovia-bench.
        let above = above.strip_suffix("\\-paper").unwrap_or(above);
        pages.push(format!("\\fB{above}\\fR(1)"));
    }
    if configurable(command) || ["sovia", "sovia-stat"].contains(&name(command)) {
        pages.push("\\fBsovia.toml\\fR(5)".to_owned());
    }
    format!("{}{}\n", roff::section("See also"), pages.join(", "))
}

/// Where the package has docs/.
const DOCUMENTS: &str = "/usr/share/doc/sovia/docs/";
const STATUS: &str = "0; 1 after a failure; 2 for a command line that is wrong.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn page_of(path: &[&str]) -> String {
        let mut whole = crate::Arguments::command();
        whole.build();
        let command = path.iter().fold(&whole, |command, name| {
            command.find_subcommand(name).expect("a command")
        });
        page(command)
    }

    #[test]
    fn what_help_says_below_has_its_sections() {
        let run = page_of(&["run"]);
        for wanted in [
            ".SH EXIT STATUS\nThe exit status is",
            ".SH ENVIRONMENT\n.TP\n\\fBSOVIA_PRELOAD\\fR\nnames ",
            ".TP\n\\fBSOVIA_CONFIG\\fR\n",
            ".SH EXAMPLES\n",
            ".SH FILES\n.TP\n\\fI$XDG_CONFIG_HOME/",
            ".SH SEE ALSO\n\\fBsovia\\fR(1), \\fBsovia.toml\\fR(5)\n",
        ] {
            assert!(run.contains(wanted), "{wanted}: {run}");
        }
        assert!(!run.contains("docs/configuration.md"), "{run}");
        assert!(page_of(&["demo"]).contains(&format!(".SH EXIT STATUS\n{STATUS}")));
    }
}
