//! What manual pages are written in: `man`'s macros, and text in which nothing is taken for one.

/// Text of a page, with `` `code` `` in bold.
pub(super) fn text(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let styled = parts.map(|(nth, part)| {
        if nth % 2 == 0 {
            escaped(part)
        } else {
            bold(part)
        }
    });
    guarded(&styled.collect::<String>())
}

pub(super) fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", escaped(text))
}

pub(super) fn italic(text: &str) -> String {
    format!("\\fI{}\\fR", escaped(text))
}

/// Lines that are shown as they are.
pub(super) fn example<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines = lines.map(|line| guarded(&escaped(line)) + "\n");
    format!(".RS 4\n.EX\n{}.EE\n.RE\n", lines.collect::<String>())
}

/// A heading, in capitals but for a table's name in the configuration.
pub(super) fn section(name: &str) -> String {
    match name.starts_with('[') {
        true => format!(".SH {}\n", escaped(name)),
        false => format!(".SH {}\n", escaped(&name.to_uppercase())),
    }
}

/// The first line; `title` is the page's name.
pub(super) fn head(title: &str, section: u8) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let title = escaped(&title.to_uppercase());
    format!(".TH {title} {section} \"\" \"sovia {version}\" \"User-level sockets\"\n")
}

/// Any terminal and any version of groff shows these.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            // Digits raised, which few fonts have.
            '⁰' => escaped.push('0'),
            '⁴' => escaped.push_str("\\(ha4"),
            character if character.is_ascii() => escaped.push(character),
            character => escaped.push_str(&format!("\\[u{:04X}]", u32::from(character))),
        }
    }
    escaped
}

/// A line that begins with a dot would be a macro's.
fn guarded(line: &str) -> String {
    match line.starts_with('.') {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_taken_for_a_macro() {
        assert_eq!(text(".so it's `--a`"), "\\&.so it\\(aqs \\fB\\-\\-a\\fR");
        assert_eq!(
            example(["a\\b", ".EE"].into_iter()),
            ".RS 4\n.EX\na\\eb\n\\&.EE\n.EE\n.RE\n"
        );
        assert_eq!(text("2⁴⁰ µs"), "2\\(ha40 \\[u00B5]s");
    }
}
