//! OPTIONS of a page: what `--help` says of each option and argument.

use clap::builder::PossibleValue;
use clap::{Arg, Command};

use super::roff;
use super::synopsis::{named, values};

/// The section, with options before what has its place; nothing if the command has neither.
pub(super) fn section(command: &Command) -> String {
    let shown = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set());
    let (places, options): (Vec<_>, Vec<_>) = shown.partition(|argument| argument.is_positional());
    let told = options.into_iter().chain(places).map(told);
    let told = told.collect::<String>();
    match told.is_empty() {
        true => told,
        false => roff::section("Options") + &told,
    }
}

fn told(argument: &Arg) -> String {
    let names = match argument.is_positional() {
        true => values(argument),
        false => named(argument, ", "),
    };
    let help = argument
        .get_long_help()
        .or_else(|| argument.get_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    // There is one page, and no summary of it.
    let help = help.replace(" (see a summary with '-h')", "");
    let help: Vec<_> = help.split("\n\n").map(roff::text).collect();
    let mut told = format!(".TP\n{names}\n{}\n", help.join("\n.IP\n"));
    if !argument.get_action().takes_values() {
        return told;
    }
    let defaults = argument.get_default_values();
    if !defaults.is_empty() && !argument.is_hide_default_value_set() {
        let defaults: Vec<_> = defaults
            .iter()
            .map(|value| value.to_string_lossy())
            .collect();
        told += &remark("default", &defaults.join(" "));
    }
    if !argument.is_hide_possible_values_set() {
        told += &possible(&argument.get_possible_values());
    }
    told
}

fn remark(name: &str, says: &str) -> String {
    format!(".br\n{}\n", roff::text(&format!("[{name}: {says}]")))
}

/// What else it takes is refused: a list if there is something to say of each.
fn possible(values: &[PossibleValue]) -> String {
    let values: Vec<_> = values.iter().filter(|value| !value.is_hide_set()).collect();
    if values.is_empty() {
        return String::new();
    }
    if values.iter().all(|value| value.get_help().is_none()) {
        let names: Vec<_> = values.iter().map(|value| value.get_name()).collect();
        return remark("possible values", &names.join(", "));
    }
    let each = values.iter().map(|value| {
        let help = value.get_help().map(ToString::to_string);
        let help = roff::text(&help.unwrap_or_default());
        format!(".TP\n{}\n{help}\n", roff::bold(value.get_name()))
    });
    format!(".RS\n{}.RE\n", each.collect::<String>())
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction};

    use super::*;

    #[test]
    fn options_come_first_with_what_they_take() {
        let command = Command::new("c")
            .disable_help_flag(true)
            .arg(Arg::new("place").value_name("PLACE").help("where"))
            .arg(
                Arg::new("way")
                    .short('w')
                    .long("way")
                    .value_name("WAY")
                    .help("how")
                    .value_parser([PossibleValue::new("by-air").help("fast")])
                    .default_value("by-air"),
            )
            .arg(
                Arg::new("secret")
                    .long("secret")
                    .hide(true)
                    .action(ArgAction::SetTrue),
            );
        let wanted = ".SH OPTIONS\n.TP\n\\fB\\-w\\fR, \\fB\\-\\-way\\fR \\fIWAY\\fR\nhow\n.br\n[default: by\\-air]\n\
                      .RS\n.TP\n\\fBby\\-air\\fR\nfast\n.RE\n.TP\n\\fIPLACE\\fR\nwhere\n";
        let mut command = command;
        command.build();
        assert_eq!(section(&command), wanted);
        assert_eq!(section(&Command::new("none")), "");
    }
}
