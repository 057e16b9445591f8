//! What was found, for people and for programs.

use comfy_table::ContentArrangement;
use serde::Serialize;
use sockets::reason::Reason;

use super::finding::{Finding, Verdict};
use crate::netpipe::table::new_table;
use crate::output::visible;

#[derive(Debug, Serialize)]
struct Report<'a> {
    program: &'a str,
    verdict: &'static str,
    findings: Vec<Entry<'a>>,
}

#[derive(Debug, Serialize)]
struct Entry<'a> {
    verdict: &'static str,
    key: &'static str,
    reason: Option<Number>,
    text: &'a str,
}

#[derive(Debug, Serialize)]
struct Number {
    number: u16,
    name: &'static str,
}

/// The worst of all.
pub(super) fn verdict(findings: &[Finding]) -> Verdict {
    let worst = findings.iter().map(|finding| finding.verdict).max();
    worst.unwrap_or(Verdict::Accelerated)
}

pub(super) fn json(program: &str, findings: &[Finding]) -> serde_json::Result<String> {
    let number = |reason: Reason| Number {
        number: reason.number(),
        name: reason.name(),
    };
    serde_json::to_string_pretty(&Report {
        program,
        verdict: verdict(findings).name(),
        findings: findings
            .iter()
            .map(|finding| Entry {
                verdict: finding.verdict.name(),
                key: finding.key,
                reason: finding.reason.map(number),
                text: &finding.text,
            })
            .collect(),
    })
    .map(|text| text + "\n")
}

/// The worst first; of equals, as they were found.
pub(super) fn table(program: &str, findings: &[Finding], width: Option<u16>) -> String {
    let mut sorted: Vec<_> = findings.iter().collect();
    sorted.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    let mut table = new_table();
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = width {
        table.set_width(width);
    }
    table.set_header(["", "found", "reason", ""]);
    for finding in sorted {
        let effect = match finding.verdict {
            Verdict::Accelerated => "",
            verdict => verdict.name(),
        };
        let reason = finding.reason.map_or_else(String::new, |reason| {
            format!("{} {}", reason.number(), reason.name())
        });
        table.add_row([effect, finding.key, &reason, &visible(&finding.text)]);
    }
    let program = visible(program);
    format!("{program}: {}\n{table}\n", verdict(findings).name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Vec<Finding> {
        vec![
            Finding::note("limits", "1024 descriptors"),
            Finding::new(Verdict::Partly, "io-uring", "liburing.so.2 is loaded")
                .because(Reason::IoUring),
            Finding::new(Verdict::Tcp, "static", "it is statically linked")
                .because(Reason::NobodyCame),
        ]
    }

    #[test]
    fn for_people() {
        let mut table = table("./server", &findings(), None);
        table.push_str(&super::table("./quiet", &[], None));
        insta::assert_snapshot!(table);
    }

    #[test]
    fn a_name_does_not_move_the_cursor() {
        let odd = Finding::note("script", "its interpreter /bin/sh\r");
        let table = table("\u{1b}[31m", &[odd], None);
        assert!(table.contains("/bin/sh\\r ") && table.starts_with("\\u{1b}[31m: "));
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        let long = Finding::note("limits", "word ".repeat(100));
        let table = table("./server", &[long], Some(60));
        assert!(table.lines().all(|line| line.chars().count() <= 60));
    }

    #[test]
    fn for_programs() {
        insta::assert_snapshot!(json("./server", &findings()).expect("it is all text"));
    }
}
