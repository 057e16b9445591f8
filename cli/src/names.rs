//! Lists of names on the command line: `a,b`, `a, b` in quotes, `a b`, or the option again.

use std::ffi::OsStr;

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::{Arg, Command, ValueEnum};

/// One of the names of `T`, with blanks around it or not.
#[derive(Clone, Debug)]
pub(crate) struct Name<T: ValueEnum + Clone + Send + Sync + 'static>(EnumValueParser<T>);

impl<T: ValueEnum + Clone + Send + Sync + 'static> Name<T> {
    pub(crate) fn new() -> Self {
        Self(EnumValueParser::new())
    }
}

impl<T: ValueEnum + Clone + Send + Sync + 'static> TypedValueParser for Name<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let trimmed = value.to_str().map(str::trim);
        let value = trimmed.map_or(value, OsStr::new);
        self.0.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// Each once, where it was named first.
pub(crate) fn once<T: Copy + PartialEq>(names: &[T]) -> Vec<T> {
    let mut once = Vec::with_capacity(names.len());
    for &name in names {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
    enum Fruit {
        Apple,
        Pear,
    }

    #[derive(Debug, Parser)]
    struct Options {
        #[arg(long, num_args = 1.., value_delimiter = ',', value_parser = Name::<Fruit>::new())]
        only: Vec<Fruit>,
    }

    #[test]
    fn lists_are_written_as_one_likes() {
        use Fruit::{Apple, Pear};
        for (words, wanted) in [
            (&["--only", "apple,pear"][..], &[Apple, Pear][..]),
            (&["--only", " apple , pear "], &[Apple, Pear]),
            (&["--only", "apple", "pear"], &[Apple, Pear]),
            (&["--only", "pear", "--only", "apple"], &[Pear, Apple]),
            (&["--only=pear,apple", "--only", "pear"], &[Pear, Apple]),
        ] {
            let words = ["c"].iter().chain(words);
            let options = Options::try_parse_from(words.clone()).expect("a list");
            assert_eq!(once(&options.only), wanted, "{words:?}");
        }
    }

    #[test]
    fn other_names_are_refused_with_the_list() {
        for list in [
            "plum",
            "apple,plum",
            "apple, plum",
            "apple,,pear",
            "apple,",
            " ",
        ] {
            let error = Options::try_parse_from(["c", "--only", list]).expect_err(list);
            let said = error.to_string();
            assert!(said.contains("[possible values: apple, pear]"), "{said}");
        }
    }
}
