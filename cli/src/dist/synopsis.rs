//! SYNOPSIS of a page: how the command is called, with what each option takes.

use clap::{Arg, ArgAction, Command};

use super::manual::visible;
use super::roff;

/// How it is called, with what each option takes.
pub(super) fn section(command: &Command) -> String {
    let called = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let mut words = vec![roff::bold(called)];
    let arguments = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set());
    let (places, options): (Vec<_>, Vec<_>) =
        arguments.partition(|argument| argument.is_positional());
    words.extend(options.into_iter().map(option));
    words.extend(places.into_iter().map(place));
    let mut synopsis = roff::section("Synopsis");
    if visible(command).next().is_some() {
        // Options of its own, and a command: one or the other.
        if command.is_args_conflicts_with_subcommands_set() {
            synopsis += &format!("{}\n.br\n", words.join(" "));
            words.truncate(1);
        }
        words.push(format!("{} [...]", roff::italic("COMMAND")));
    }
    synopsis + &words.join(" ") + "\n"
}

fn option(option: &Arg) -> String {
    let shown = named(option, "|");
    match (option.is_required_set(), several(option)) {
        (_, Several::Again) => format!("[{shown}]..."),
        (true, _) => shown,
        (false, _) => format!("[{shown}]"),
    }
}

/// An option's names and what it takes.
pub(super) fn named(option: &Arg, between: &str) -> String {
    let short = option
        .get_short()
        .map(|short| roff::bold(&format!("-{short}")));
    let long = option
        .get_long()
        .map(|long| roff::bold(&format!("--{long}")));
    let names: Vec<_> = short.into_iter().chain(long).collect();
    let mut shown = names.join(between);
    if option.get_action().takes_values() {
        let value = values(option);
        let may_lack_it = option
            .get_num_args()
            .is_some_and(|number| number.min_values() == 0);
        shown += &match (may_lack_it, option.is_require_equals_set()) {
            (true, _) => format!("[={value}]"),
            (false, true) => format!("={value}"),
            (false, false) => format!(" {value}"),
        };
    }
    shown
}

fn place(place: &Arg) -> String {
    match place.is_required_set() {
        true => values(place),
        false => format!("[{}]", values(place)),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Several {
    No,
    /// One after the other, with commas between or as words.
    List,
    /// The option, again and again.
    Again,
}

fn several(argument: &Arg) -> Several {
    let most = argument
        .get_num_args()
        .map_or(1, |number| number.max_values());
    match argument.get_action() {
        _ if argument.get_value_delimiter().is_some() || most > 1 => Several::List,
        ArgAction::Append => Several::Again,
        _ => Several::No,
    }
}

/// What an option or a place takes.
pub(super) fn values(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let names: Vec<_> = names.iter().map(|name| roff::italic(name)).collect();
    let names = match names.is_empty() {
        true => roff::italic(&argument.get_id().as_str().to_uppercase()),
        false => names.join(" "),
    };
    match (several(argument), argument.get_value_delimiter()) {
        (Several::List, Some(delimiter)) => format!("{names}[{delimiter}...]"),
        (Several::List, None) => format!("{names}..."),
        _ if argument.is_positional() && argument.is_trailing_var_arg_set() => {
            format!("{names}...")
        }
        _ => names,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn of(name: &str) -> String {
        let mut whole = crate::Arguments::command();
        whole.build();
        section(whole.find_subcommand(name).expect("a command"))
    }

    #[test]
    fn the_synopsis_says_what_options_take() {
        let run = of("run");
        assert!(run.contains("[\\fB\\-\\-config\\fR \\fIFILE\\fR]"), "{run}");
        assert!(run.contains(" \\fIPROGRAM\\fR...\n"), "{run}");
        let stat = of("stat");
        assert!(
            stat.contains("[\\fB\\-\\-watch\\fR[=\\fISECONDS\\fR]]"),
            "{stat}"
        );
        assert!(stat.contains("[\\fIFILTER\\fR...]"), "{stat}");
        let bench = of("bench");
        assert!(
            bench.contains("[\\fB\\-\\-only\\fR \\fINAME\\fR[,...]]"),
            "{bench}"
        );
        assert!(
            bench.contains("\n\\fBsovia bench\\fR \\fICOMMAND\\fR [...]\n"),
            "{bench}"
        );
    }
}
