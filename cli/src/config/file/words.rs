//! How a connection is to be, as a rule and `[connection]` say it.

use std::ops::RangeInclusive;

use sockets::rules::text::Words;
use sys::stream::Size;
use toml::Spanned;

use super::shape::{ConnectionTable, Whole};
use super::{Mistake, mistake};

impl ConnectionTable {
    pub(super) fn checked(self) -> Result<Words, Mistake> {
        let spin_us: Option<u32> = bounded(self.spin_us, 0..=1000)?;
        Ok(Words {
            upgrade: None,
            turns: bounded(self.after_turns, 1..=1_000_000)?,
            bytes: bounded(self.after_bytes, 1..=1 << 40)?,
            spin_ns: spin_us.map(|us| us * 1000),
            ring: ring_size(self.buffer_bytes)?,
        })
    }
}

fn bounded<T: TryFrom<i64>>(
    value: Option<Spanned<Whole>>,
    bounds: RangeInclusive<i64>,
) -> Result<Option<T>, Mistake> {
    let Some(value) = value else {
        return Ok(None);
    };
    let span = value.span();
    let number = Some(value.into_inner().0)
        .filter(|number| bounds.contains(number))
        .and_then(|number| T::try_from(number).ok());
    match number {
        Some(number) => Ok(Some(number)),
        None => Err(mistake(
            &span,
            format!("not from {} to {}", bounds.start(), bounds.end()),
        )),
    }
}

/// Bytes of a connection's buffer in each direction.
fn ring_size(value: Option<Spanned<Whole>>) -> Result<Option<Size>, Mistake> {
    let Some(value) = value else {
        return Ok(None);
    };
    let span = value.span();
    let bytes = usize::try_from(value.into_inner().0).ok();
    match bytes.and_then(Size::new) {
        Some(size) => Ok(Some(size)),
        None => Err(mistake(
            &span,
            format!(
                "no power of two from {} to {}",
                Size::LEAST.bytes(),
                Size::MOST.bytes()
            ),
        )),
    }
}
