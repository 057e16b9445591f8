//! sovia.toml(5), made of docs/configuration.md: its headings, paragraphs, lists, tables and blocks of code.

use super::roff;

/// The page.
pub(super) fn page() -> String {
    page_of(CONFIGURATION)
}

fn page_of(document: &str) -> String {
    let mut page = roff::head("sovia.toml", 5);
    page += &roff::section("Name");
    page += "sovia.toml \\- which connections leave TCP, and how\n";
    page += &roff::section("Description");
    let mut lines = document
        .lines()
        .skip_while(|line| line.starts_with("# ") || line.is_empty())
        .peekable();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            page += &roff::section(&title.replace('`', ""));
        } else if line.starts_with("```") {
            page += ".PP\n";
            page += &roff::example(lines.by_ref().take_while(|line| !line.starts_with("```")));
        } else if line.starts_with('|') {
            let mut rows = vec![cells(line)];
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(cells(row));
            }
            page += &table(&rows);
        } else if let Some((mark, item)) = item(line) {
            let mut item = item.to_owned();
            // It goes on in lines that are indented.
            while let Some(more) = lines.next_if(|line| line.starts_with("  ")) {
                item += &format!(" {}", more.trim());
            }
            page += &format!(".IP {mark} 4\n{}\n", prose(&item));
        } else if line.is_empty() {
            if lines.peek().is_some_and(|line| is_prose(line)) {
                page += ".PP\n";
            }
        } else {
            page += &format!("{}\n", prose(line));
        }
    }
    page += &roff::section("Files");
    for (file, what) in FILES {
        page += &format!(".TP\n{}\n{what}\n", roff::italic(file));
    }
    let pages =
        ["run", "check", "explain", "stat"].map(|page| format!("\\fBsovia\\-{page}\\fR(1)"));
    page + &format!("{}{}\n", roff::section("See also"), pages.join(", "))
}

fn is_prose(line: &str) -> bool {
    let other = ["#", "|", "```"];
    !line.is_empty() && item(line).is_none() && !other.iter().any(|mark| line.starts_with(mark))
}

/// `- text`, `1. text`
fn item(line: &str) -> Option<(&str, &str)> {
    if let Some(text) = line.strip_prefix("- ") {
        return Some(("\\(bu", text));
    }
    let (number, text) = line.split_once(". ")?;
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| (&line[..number.len() + 1], text))
}

/// The cells of a table's row; `\|` is one of a cell's own.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches('|');
    let row = row.strip_suffix('|').unwrap_or(row).replace("\\|", "\0");
    let cells = row.split('|').map(|cell| cell.trim().replace('\0', "|"));
    cells.collect()
}

/// A paragraph for each row, named by its first cell; what has a heading is told with it, but for the last, which is the text.
fn table(rows: &[Vec<String>]) -> String {
    let mut paragraphs = String::new();
    let Some(headings) = rows.first() else {
        return paragraphs;
    };
    // The second row is a rule.
    for row in rows.iter().skip(2) {
        let mut told = row
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, cell)| !cell.is_empty());
        let last = told.next_back().map_or("", |(_, cell)| cell);
        let facts = told.map(|(nth, cell)| match headings.get(nth).map(String::as_str) {
            None | Some("") => cell.clone(),
            Some(heading) => format!("{heading}: {cell}"),
        });
        let facts = facts.collect::<Vec<_>>().join("; ");
        let name = row.first().map_or("", String::as_str);
        paragraphs += &format!(".TP\n{}\n", prose(name));
        if !facts.is_empty() {
            paragraphs += &format!("{}\n.br\n", prose(&facts));
        }
        paragraphs += &format!("{}\n", prose(last));
    }
    paragraphs
}

/// Text without its links: who reads the page has no folder of documents.
fn prose(line: &str) -> String {
    let mut plain = String::new();
    let mut rest = line;
    while let Some((before, link)) = rest.split_once('[') {
        let whole = link.split_once("](").and_then(|(text, target)| {
            let (_, after) = target.split_once(')')?;
            (!text.contains(['[', ']', '`'])).then_some((text, after))
        });
        plain += before;
        match whole {
            // A remark that is nothing but a link.
            Some(("why", after)) if before.ends_with('(') && after.starts_with(')') => {
                plain.truncate(plain.trim_end_matches('(').trim_end().len());
                rest = &after[1..];
            }
            Some((text, after)) => {
                plain += text;
                rest = after;
            }
            None => {
                plain.push('[');
                rest = link;
            }
        }
    }
    roff::text(&(plain + rest))
}

pub(super) const FILES: [(&str, &str); 2] = [
    (
        "$XDG_CONFIG_HOME/sovia/sovia.toml",
        "The user\\(aqs configuration; $XDG_CONFIG_HOME is ~/.config if it is not set",
    ),
    (
        "/etc/sovia/sovia.toml",
        "The configuration of those who have none of their own",
    ),
];
const CONFIGURATION: &str = include_str!("../../../docs/configuration.md");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_tables_has_a_paragraph() {
        let page = page();
        let rows = CONFIGURATION.lines().filter(|line| line.starts_with("| `"));
        let mut keys = 0;
        for row in rows {
            let key = cells(row)[0].clone();
            assert!(page.contains(&format!(".TP\n{}\n", prose(&key))), "{key}");
            keys += 1;
        }
        assert!(keys > 10, "{keys}");
    }

    #[test]
    fn a_document_becomes_a_page() {
        let page = page_of(
            "# Title\n\nFirst, see [that](x.md) and `[[rule]]`.\n\n1. one ([why](y.md)),\n2. two.\n\n```toml\na = 1\n```\n\n## `[t]`\n\n\
             | key | from, to | |\n|---|---|---|\n| `k` | 1, 2 | what `a\\|b` is |\n",
        );
        let wanted = ".SH DESCRIPTION\nFirst, see that and \\fB[[rule]]\\fR.\n.IP 1. 4\none,\n.IP 2. 4\ntwo.\n.PP\n.RS 4\n.EX\na = 1\n.EE\n.RE\n\
                      .SH [t]\n.TP\n\\fBk\\fR\nfrom, to: 1, 2\n.br\nwhat \\fBa|b\\fR is\n";
        assert!(page.contains(wanted), "{page}");
    }

    #[test]
    fn no_link_and_no_markup_is_left() {
        let page = page();
        assert!(!page.contains("]("), "{page}");
        assert!(!page.contains("\\(ga"), "{page}");
    }
}
