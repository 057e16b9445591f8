use super::{Page, Table};
use crate::error::Result;

pub(super) fn page(page: &Page) -> Result<String> {
    let title = escaped(&page.title);
    let mut html = format!(
        "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n"
    );
    paragraphs(&mut html, &page.before, "");
    for section in &page.sections {
        html.push_str(&format!("<h2>{}</h2>\n", escaped(&section.title)));
        for plot in &section.plots {
            html.push_str(&plot.svg()?);
        }
        if let Some(table) = &section.table {
            tabulate(&mut html, table);
        }
        paragraphs(&mut html, &section.words, "");
    }
    paragraphs(&mut html, &page.notes, "");
    paragraphs(&mut html, &page.foot, " class=small");
    Ok(html)
}

fn tabulate(html: &mut String, table: &Table) {
    html.push_str("<table>\n<tr>");
    for cell in &table.header {
        html.push_str(&format!("<th>{}</th>", escaped(cell)));
    }
    for row in &table.rows {
        html.push_str("</tr>\n<tr>");
        for cell in row {
            html.push_str(&format!("<td>{}</td>", escaped(cell)));
        }
    }
    html.push_str("</tr>\n</table>\n");
}

fn paragraphs(html: &mut String, texts: &[String], attributes: &str) {
    for text in texts {
        html.push_str(&format!("<p{attributes}>{}</p>\n", escaped(text)));
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:960px;margin:2em auto;padding:0 1em}svg{max-width:100%;height:auto}\
table{border-collapse:collapse;font-size:13px}td,th{padding:2px 9px;border-bottom:1px solid #ddd;text-align:right}\
td:first-child,th:first-child{text-align:left}.small{color:#666;font-size:13px}";
