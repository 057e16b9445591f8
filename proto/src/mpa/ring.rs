//! The buffer into which a socket is read: octets go in and out, and never move in between.

/// A ring of octets, allocated when it is first filled.
#[derive(Debug)]
pub(super) struct Ring {
    octets: Box<[u8]>,
    capacity: usize,
    head: usize,
    len: usize,
}

impl Ring {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            octets: Box::default(),
            capacity,
            head: 0,
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Room for more, in the order in which it is to be filled.
    pub(super) fn space(&mut self) -> [&mut [u8]; 2] {
        if self.octets.is_empty() {
            self.allocate();
        }
        if self.len == 0 {
            self.head = 0;
        }
        let end = self.head + self.len;
        if end >= self.capacity {
            let free = end - self.capacity..self.head;
            return [self.octets.get_mut(free).unwrap_or_default(), &mut []];
        }
        let (low, high) = self.octets.split_at_mut(end);
        [high, low.get_mut(..self.head).unwrap_or_default()]
    }

    /// All of the room, in one piece, if nothing is in it.
    #[inline]
    pub(super) fn fresh(&mut self) -> Option<&mut [u8]> {
        if self.len > 0 {
            return None;
        }
        if self.octets.is_empty() {
            self.allocate();
        }
        self.head = 0;
        Some(&mut self.octets)
    }

    #[cold]
    fn allocate(&mut self) {
        self.octets = vec![0; self.capacity].into_boxed_slice();
    }

    /// `n` octets of the space have been filled.
    #[inline]
    pub(super) fn fill(&mut self, n: usize) {
        self.len += n.min(self.capacity - self.len);
    }

    /// The first `n` octets are done with.
    pub(super) fn release(&mut self, n: usize) {
        let n = n.min(self.len);
        self.len -= n;
        self.head += n;
        if self.head >= self.capacity {
            self.head -= self.capacity;
        }
    }

    /// All of them, if they lie in one piece.
    #[inline]
    pub(super) fn run(&self) -> Option<&[u8]> {
        self.octets.get(self.head..self.head + self.len)
    }

    /// `len` octets from the `from`th on, as far as there are any.
    pub(super) fn range(&self, from: usize, len: usize) -> [&[u8]; 2] {
        let from = from.min(self.len);
        let len = len.min(self.len - from);
        let start = self.head + from;
        let (start, wrapped) = if start >= self.capacity {
            (start - self.capacity, true)
        } else {
            (start, false)
        };
        let first = if wrapped {
            len
        } else {
            len.min(self.capacity - start)
        };
        [
            self.octets.get(start..start + first).unwrap_or_default(),
            self.octets.get(..len - first).unwrap_or_default(),
        ]
    }

    /// The `N` octets from the `from`th on.
    pub(super) fn peek<const N: usize>(&self, from: usize) -> Option<[u8; N]> {
        let mut peeked = [0; N];
        let [first, second] = self.range(from, N);
        if first.len() + second.len() < N {
            return None;
        }
        for (into, octet) in peeked.iter_mut().zip(first.iter().chain(second)) {
            *into = *octet;
        }
        Some(peeked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_come_out_as_they_went_in() {
        let mut ring = Ring::new(7);
        let (mut written, mut read, mut total) = (0u8, 0u8, 0);
        for step in 0..2000usize {
            let mut filled = 0;
            for slice in ring.space() {
                for octet in slice.iter_mut().take(step % 6) {
                    *octet = written;
                    written = written.wrapping_add(1);
                    filled += 1;
                }
                if filled > 0 {
                    break;
                }
            }
            ring.fill(filled);
            let take = (step % 4).min(ring.len());
            let [first, second] = ring.range(0, take);
            for octet in first.iter().chain(second) {
                assert_eq!(*octet, read);
                read = read.wrapping_add(1);
            }
            ring.release(take);
            total += take;
        }
        assert!(total > 100, "{total}");
    }

    #[test]
    fn nothing_is_allocated_before_it_is_needed() {
        let ring = Ring::new(1 << 16);
        assert_eq!(ring.octets.len(), 0);
        assert_eq!(ring.range(0, 5), [&[] as &[u8]; 2]);
        assert_eq!(ring.peek::<2>(0), None);
    }
}
