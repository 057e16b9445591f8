use super::*;

fn parse(text: &str) -> Source {
    Source::parse("a.rs", text)
}

fn written(source: &Source) -> Vec<String> {
    source
        .paths()
        .iter()
        .map(|p| p.segments.join("::"))
        .filter(|p| p.contains("::"))
        .collect()
}

#[test]
fn comments_and_literals_are_no_code() {
    let source = parse(
        "let a = \"x // y\"; // note\nlet b = r#\"quo\"te\"#; /* a\nb */ c();\nlet d = '\\''; let e = 'x';\n",
    );
    assert_eq!(source.code[0], "let a = \"      \";");
    assert_eq!(source.comment[0].trim(), "// note");
    assert!(!source.code[1].contains("te"));
    assert_eq!(source.code[2].trim(), "c();");
    assert!(source.code[3].contains("let e"));
    assert_eq!(source.comment[2].trim(), "b */");
}

#[test]
fn lifetimes_are_no_characters() {
    let source = parse("fn f<'a>(x: &'a str) -> &'a str { x } // 'c\n");
    assert_eq!(source.code[0], "fn f<'a>(x: &'a str) -> &'a str { x }");
}

#[test]
fn byte_strings_and_raw_names() {
    let source =
        parse("let a = br\"unsafe\"; let r#fn = xr; let b = b\"unsafe\"; let c = c\"unsafe\";\n");
    assert!(!source.code[0].contains("unsafe"));
    assert!(source.code[0].contains("r#fn = xr"));
}

#[test]
fn nested_block_comment() {
    let source = parse("/* a /* b */ c */ code\n");
    assert_eq!(source.code[0].trim(), "code");
}

#[test]
fn use_trees_are_written_out() {
    let source = parse(
        "use std::{\n    fs,\n    sync::{Arc, atomic::{AtomicU32, Ordering}},\n};\nlet x = libc::read(fd);\n",
    );
    let expected = [
        "std::fs",
        "std::sync::Arc",
        "std::sync::atomic::AtomicU32",
        "std::sync::atomic::Ordering",
        "libc::read",
    ];
    assert_eq!(written(&source), expected);
    assert_eq!(
        source
            .paths()
            .iter()
            .find(|p| p.contains(&["atomic"]))
            .map(|p| p.line),
        Some(2)
    );
}

#[test]
fn leading_colons_and_globs() {
    let source = parse("use ::std::net::*;\nlet t = <std::time::Instant>::now();\n");
    assert_eq!(written(&source), ["std::net", "std::time::Instant"]);
}

#[test]
fn block_after_a_path_is_no_tree() {
    let source = parse("match a::B { x => y::Z { f: g::h } }\n");
    assert_eq!(written(&source), ["a::B", "y::Z", "g::h"]);
}

#[test]
fn test_modules_are_marked() {
    let source = parse("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { {} }\n}\nfn c() {}\n");
    assert_eq!(source.test, [false, true, true, true, true, false]);
}

#[test]
fn test_module_in_its_own_file() {
    let source =
        parse("#[cfg(all(test, not(loom)))]\n#[expect(dead_code)]\nmod model;\nfn a() {}\n");
    assert_eq!(source.test, [true, true, true, false]);
    assert_eq!(source.test_modules, ["model"]);
}

#[test]
fn conditions_that_do_not_imply_test() {
    for condition in [
        "not(test)",
        "any(test, feature = \"x\")",
        "unix",
        "all(unix, not(test))",
    ] {
        let source = parse(&format!("#[cfg({condition})]\nmod a {{\n}}\n"));
        assert_eq!(source.test, [false; 3], "{condition}");
    }
    for condition in [
        "test",
        "loom",
        "any(test, loom)",
        "all(unix, any(test, loom))",
    ] {
        let source = parse(&format!("#[cfg({condition})]\nmod a {{\n}}\n"));
        assert_eq!(source.test, [true; 3], "{condition}");
    }
}

#[test]
fn a_test_field_ends_at_its_comma() {
    let source = parse("struct A {\n    #[cfg(test)]\n    seen: Vec<u8>,\n    real: u8,\n}\n");
    assert_eq!(source.test, [false, true, true, false, false]);
}

#[test]
fn inner_attribute_marks_the_file() {
    assert_eq!(parse("#![cfg(loom)]\nfn a() {}\n").test, [true, true]);
}
