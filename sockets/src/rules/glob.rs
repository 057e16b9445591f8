//! Patterns for the names of programs: `*` is any text, slashes too, and `?` any one byte.

/// Whether `text` fits `pattern`. Allocates nothing; takes at most as many steps as the product of the two lengths.
///
/// ```
/// # use sockets::rules::glob::fits;
/// assert!(fits(b"redis-*", b"redis-server"));
/// assert!(!fits(b"redis-?", b"redis-server"));
/// ```
#[must_use]
pub fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Behind the last star, and where it last ended.
    let mut star = None;
    while let Some(&byte) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                star = Some((p, t));
            }
            Some(&wanted) if wanted == b'?' || wanted == byte => {
                p += 1;
                t += 1;
            }
            _ => match &mut star {
                Some((behind, until)) => {
                    *until += 1;
                    (p, t) = (*behind, *until);
                }
                None => return false,
            },
        }
    }
    pattern
        .get(p..)
        .is_some_and(|rest| rest.iter().all(|&byte| byte == b'*'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As its definition says.
    fn model(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => (0..=text.len()).any(|skip| model(rest, &text[skip..])),
            ([b'?', pattern @ ..], [_, text @ ..]) => model(pattern, text),
            ([a, pattern @ ..], [b, text @ ..]) => a == b && model(pattern, text),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn stars_fit_as_defined(pattern in "[ab*?]{0,8}", text in "[ab/]{0,10}") {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(fits(pattern, text), model(pattern, text));
        }
    }
}
